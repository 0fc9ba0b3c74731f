// import_onnx and gap_report. They bind the inputs' dimensions, import the main graph, and collect
// the gaps that importers report.
#include <algorithm>
#include <set>

#include "frontend/frontend.h"
#include "frontend/onnx/given_inputs.h"
#include "frontend/onnx/graph_import.h"
#include "ir/dim_names.h"
#include "support/hash.h"

namespace tw {
namespace onnx_import {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 40, kMaxItems = 1000;

// The free dimensions of a model's inputs: the model's names for them, and the symbols in the
// graph.
class Symbols {
 public:
  explicit Symbols(const ImportOptions& options) : options_(options) {}

  void add_inputs(const std::vector<OnnxValueInfo>& inputs) {
    for (const OnnxValueInfo& input : inputs) {
      if (is_list(input)) lists_.insert(input.name);
      for (int64_t i = 0, count = items(input).value_or(0); i < count && is_list(input); ++i)
        add(item(input, i));
      if (!is_list(input)) add(input);
    }
  }

  static bool is_list(const OnnxValueInfo& input) {
    return input.kind == "sequence" || input.kind == "optional" ||
           input.kind == "optional sequence";
  }
  // The number of tensors in a sequence or an optional, if the options give it.
  std::optional<int64_t> items(const OnnxValueInfo& input) const {
    const auto given = options_.dims.find(input.name);
    if (given == options_.dims.end() || given->second < 0 || given->second > kMaxItems)
      return std::nullopt;
    return given->second;
  }
  // One of these tensors. Items with the same number share the symbols of their extents across
  // sequences.
  static OnnxValueInfo item(OnnxValueInfo input, int64_t number) {
    const std::string suffix = "_" + std::to_string(number);
    input.name += suffix;
    for (OnnxDim& dim : input.dims)
      if (dim.value < 0 && !dim.symbol.empty()) dim.symbol += suffix;
    return input;
  }

  // Finds the dimensions that the options name. Errors: unknown names, a dimension given twice,
  // values that are no extents.
  Error resolve() {
    std::vector<Diag> problems;
    const auto refuse = [&](std::string text) {
      problems.push_back({DiagCode::invalid_argument, std::move(text), {}, {}});
    };
    const auto find = [&](const std::string& text) -> std::optional<std::string> {
      Expected<std::string> name = find_dim(text, specs_);
      if (!name) {
        for (Diag& d : take_diags(name.takeError())) problems.push_back(std::move(d));
        return std::nullopt;
      }
      return *name;
    };
    for (const auto& [text, value] : options_.dims) {
      if (lists_.count(text)) {
        if (value < 0 || value > kMaxItems)
          refuse(llvm::formatv("input '{0}' cannot hold {1} tensors, only 0 to {2}", text, value,
                               kMaxItems)
                     .str());
        dims_[text] = value;
      } else if (const auto name = find(text)) {
        if (value < 0 || value > kMaxDim)
          refuse(
              llvm::formatv("dimension '{0}' cannot be {1}, only 0 to {2}", *name, value, kMaxDim)
                  .str());
        if (!dims_.emplace(*name, value).second)
          refuse("dimension '" + *name + "' is given twice, once as '" + text + "'");
      }
    }
    for (const auto& [text, range] : options_.limits) {
      const auto name = find(text);
      if (!name) continue;
      if (range.least < 0 || range.most < range.least || range.most > kMaxDim)
        refuse(llvm::formatv(
                   "dimension '{0}' cannot go from {1} to {2}, only from 0 or more to at most {3}",
                   *name, range.least, range.most, kMaxDim)
                   .str());
      if (!ranges_.emplace(*name, range).second)
        refuse("dimension '" + *name + "' is given twice, once as '" + text + "'");
    }
    return make_error(std::move(problems));
  }

  // The model's input with the dimensions that the options bind, for the nodes that prepare it. The
  // interface does not have these dimensions, but the options may name them.
  OnnxValueInfo bound_input(const OnnxValueInfo& input, const InputForm& form) {
    OnnxValueInfo bound = input;
    TensorSpec gone{input.name, DType::f32, Shape(input.dims.size())};
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      OnnxDim& dim = bound.dims[axis];
      // A caller's layout numbers the axes in another way
      if (dim.value >= 0 || (dim.symbol.empty() && form.layout)) continue;
      const std::string name = written(input, axis);
      for (const auto& [text, value] : options_.dims)
        if (text == name || text == identifier(name)) dim.value = value;
      if (dim.value < 0) continue;
      gone.dims[axis] = var(name);
      intern(name);
    }
    specs_.push_back(std::move(gone));
    return bound;
  }

  Expr dim(const OnnxValueInfo& input, size_t axis, Builder& builder) const {
    if (input.dims[axis].value >= 0) return input.dims[axis].value;
    const std::string name = written(input, axis), own = names_.at(name);
    if (const auto bound = dims_.find(name); bound != dims_.end()) return bound->second;
    if (const auto range = ranges_.find(name); range != ranges_.end()) {
      const std::string symbol = symbol_name(own, range->second.least);
      builder.add_symbol(symbol, name, range->second);
      return var(symbol);
    }
    const std::string symbol = symbol_name(own, 1);
    builder.add_symbol(symbol, name, std::nullopt);
    return var(symbol);
  }
  const std::map<std::string, int64_t>& bound() const { return dims_; }

 private:
  static std::string written(const OnnxValueInfo& input, size_t axis) {
    const OnnxDim& dim = input.dims[axis];
    return dim.symbol.empty() ? dim_at(input.name, axis) : dim.symbol;
  }
  void add(const OnnxValueInfo& input) {
    TensorSpec& spec = specs_.emplace_back();
    spec.name = input.name;
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const int64_t extent = input.dims[axis].value;
      spec.dims.push_back(extent >= 0 ? Expr(extent) : var(written(input, axis)));
      if (extent < 0) intern(written(input, axis));
    }
  }
  void intern(const std::string& name) {
    if (names_.count(name)) return;
    std::string own = identifier(name);
    for (int suffix = 2; own_.count(own); ++suffix)
      own = identifier(name) + "_" + std::to_string(suffix);
    own_.insert(own);
    names_[name] = own;
  }

  const ImportOptions& options_;
  std::set<std::string> lists_;               // names of inputs
  std::vector<TensorSpec> specs_;             // inputs, with the model's names in their dims
  std::map<std::string, std::string> names_;  // the model's name -> the symbol's stem
  std::set<std::string> own_;
  std::map<std::string, int64_t> dims_;  // bound dimensions, by the model's names
  SymbolLimitsOf ranges_;                // by the model's names
};

class Importer {
 public:
  Importer(const OnnxModel& model, const ImportOptions& options)
      : model_(model.graph),
        options_(options),
        symbols_(options),
        main_(model.graph, builder_, state_) {}

  Error run() {
    TW_TRY(read_given());
    TW_TRY(symbols_.resolve());
    for (const OnnxValueInfo& input : model_.inputs) main_.bind(input.name, import_given(input));
    main_.run();
    std::set<std::string> names;
    for (size_t i = 0; i < model_.outputs.size(); ++i) {
      const std::string& output = model_.outputs[i];
      if (!names.insert(output).second) {
        state_.gaps.add(DiagCode::invalid_model, "output",
                        "output '" + output + "' is listed twice", "", output);
        continue;
      }
      const Val v = main_.output(output);
      if (!v.valid()) continue;
      if (!builder_.list_kind(v)) compare(model_.declared[i], builder_.type(v));
      add_output(output, v);
    }
    std::ranges::copy(builder_.fixed_sizes(), std::back_inserter(state_.warnings));
    if (outputs_.empty() && state_.gaps.empty() && !model_.outputs.empty())
      state_.gaps.add(DiagCode::unsupported, "output", "all of them are empty lists", "",
                      model_.outputs.front());
    return Error::success();
  }

  Gaps& gaps() { return state_.gaps; }
  const std::map<std::string, int64_t>& bound() const { return symbols_.bound(); }
  const SymbolNames& symbol_names() const { return builder_.symbol_names(); }
  std::vector<std::string>& warnings() { return state_.warnings; }
  Expected<Graph> finish(const std::string& name) { return builder_.finish(name, outputs_); }

 private:
  Val refuse(DiagCode code, const std::string& problem, const std::string& advice,
             const OnnxValueInfo& input) {
    state_.gaps.add(code, "input", problem, advice, input.name);
    return {};
  }

  // Reads what the options say of the inputs, and the dims of inputs that remain.
  Error read_given() {
    TW_TRY(check_given(options_.given, model_.inputs));
    std::vector<Diag> problems;
    std::vector<OnnxValueInfo> inputs;
    const auto keep = [&](Error error) {
      for (Diag& diag : take_diags(std::move(error))) problems.push_back(std::move(diag));
    };
    for (const OnnxValueInfo& input : model_.inputs) {
      const auto value = options_.given.values.find(input.name);
      const auto form = options_.given.forms.of.find(input.name);
      if (value != options_.given.values.end()) {
        Expected<OnnxTensor> tensor = input_value(input, value->second);
        if (tensor) values_[input.name] = std::move(*tensor);
        else keep(tensor.takeError());
      } else if (form != options_.given.forms.of.end()) {
        Expected<GivenInput> given = given_input(
            form->second.size ? symbols_.bound_input(input, form->second) : input, form->second);
        if (!given) keep(given.takeError());
        else inputs.push_back((prepared_[input.name] = std::move(*given)).info);
      } else {
        inputs.push_back(input);
      }
    }
    symbols_.add_inputs(inputs);
    return make_error(std::move(problems));
  }

  // Returns an invalid value after it has reported a problem.
  Val import_given(const OnnxValueInfo& input) {
    if (const auto value = values_.find(input.name); value != values_.end()) {
      const OnnxTensor& tensor = value->second;
      return builder_.add_constant(
          input.name, {*tensor.dtype(), Shape(tensor.dims.begin(), tensor.dims.end()), {}},
          tensor.data);
    }
    const auto prepared = prepared_.find(input.name);
    if (prepared == prepared_.end()) return import_input(input);
    const Val given = import_input(prepared->second.info);
    GraphImport preparation(prepared->second.preparation, builder_, state_);
    preparation.bind(input.name, given);
    if (given.valid()) preparation.run();
    return preparation.output(prepared->second.preparation.outputs[0]);
  }

  // Returns an invalid value after it has reported a problem.
  Val import_input(const OnnxValueInfo& input) {
    if (input.kind == "tensor") return import_tensor(input);
    if (!Symbols::is_list(input))
      return refuse(DiagCode::unsupported, "type " + input.kind,
                    "only tensors, sequences and optionals can be inputs", input);
    return import_list(input);
  }

  Val import_tensor(const OnnxValueInfo& input) {
    const auto dtype = dtype_from_onnx(input.element_type);
    if (!dtype)
      return refuse(DiagCode::unsupported, "dtype " + element_type_name(input.element_type),
                    "convert the model to float32 or an integer type", input);
    if (!input.has_shape)
      return refuse(DiagCode::unsupported, "no shape, not even a rank",
                    "give the input a shape when exporting", input);
    std::optional<Shape> shape = input_shape(input, *dtype);
    return shape ? builder_.add_input(input.name, {*dtype, std::move(*shape), {}}) : Val{};
  }

  // The tensors of a list are separate inputs with numbers: x_0, x_1, ... An optional has one or
  // none.
  Val import_list(const OnnxValueInfo& input) {
    const std::optional<int64_t> count = symbols_.items(input);
    if (!count || (input.kind == "optional" && *count > 1))
      return refuse(DiagCode::unsupported, "type " + input.kind + " of a length that is not known",
                    "say how many tensors it holds: --dim " + input.name + "=N", input);
    std::vector<Val> items;
    for (int64_t i = 0; i < *count; ++i) {
      items.push_back(import_tensor(Symbols::item(input, i)));
      if (!items.back().valid()) return {};
    }
    if (input.kind == "optional")
      return builder_.list(Builder::ListKind::optional, std::move(items));
    const Val sequence = builder_.list(Builder::ListKind::sequence, std::move(items));
    return input.kind == "sequence" ? sequence
                                    : builder_.list(Builder::ListKind::optional, {sequence});
  }

  std::optional<Shape> input_shape(const OnnxValueInfo& input, DType dtype) {
    Shape shape;
    int64_t count = 1;
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      shape.push_back(symbols_.dim(input, axis, builder_));
      const int64_t extent = std::max<int64_t>(1, as_const(shape.back()).value_or(1));
      if (extent > kMaxDim / count) {
        refuse(DiagCode::limit, "more than 2^40 elements", "", input);
        return std::nullopt;
      }
      count *= extent;
    }
    if (Error error = check_type({dtype, shape, {}})) {
      refuse(DiagCode::limit, error_text(std::move(error)), "", input);
      return std::nullopt;
    }
    return shape;
  }

  // An output whose type differs from its declaration is an error, as users read memory by the
  // declaration. Other sizes are a warning: exporters often leave sizes of another input there.
  void compare(const OnnxValueInfo& declared, const TensorType& type) {
    if (declared.kind != "tensor" || declared.element_type == 0) return;
    if (dtype_from_onnx(declared.element_type) != type.dtype) {
      state_.gaps.add(
          DiagCode::invalid_model, "output",
          llvm::formatv("declared as {0}, its nodes give {1}",
                        element_type_name(declared.element_type), dtype_name(type.dtype))
              .str(),
          llvm::formatv("declare it as {0}, or cast it", dtype_name(type.dtype)).str(),
          declared.name);
      return;
    }
    if (!declared.has_shape) return;
    bool same = declared.dims.size() == type.shape.size();
    std::string text;
    for (size_t i = 0; i < declared.dims.size(); ++i) {
      const OnnxDim& dim = declared.dims[i];
      const auto extent = same ? as_const(type.shape[i]) : std::nullopt;
      same = same && (dim.value < 0 || !extent || *extent == dim.value);
      text += (i ? ", " : "") + (dim.value >= 0       ? std::to_string(dim.value)
                                 : dim.symbol.empty() ? "?"
                                                      : dim.symbol);
    }
    if (!same)
      state_.warnings.push_back(
          llvm::formatv("output '{0}' is declared as [{1}], its nodes give {2}", declared.name,
                        text, with_names(to_string(type.shape), symbol_names()))
              .str());
  }

  // The tensors of a list are separate outputs, numbered as inputs are. If only the run knows the
  // list, the outputs are its rows and sizes, and whether it is present.
  void add_output(const std::string& name, Val v) {
    const auto kind = builder_.list_kind(v);
    if (!kind) {
      outputs_.push_back({name, v});
      return;
    }
    const std::vector<Val>& items = builder_.items(v);
    const auto held = [&](Val item) {
      add_output(builder_.list_kind(item) ? name : name + "_0", item);
    };
    switch (*kind) {
      case Builder::ListKind::sequence:
      case Builder::ListKind::growing:
        for (size_t i = 0; i < items.size(); ++i)
          add_output(name + "_" + std::to_string(i), items[i]);
        break;
      case Builder::ListKind::optional: std::ranges::for_each(items, held); break;
      case Builder::ListKind::rows:
        add_output(name + "_rows", items[0]);
        add_output(name + "_sizes", items[1]);
        break;
      case Builder::ListKind::maybe:
        add_output(name + "_there", items[0]);
        held(items[1]);
        break;
    }
  }

  const OnnxGraph& model_;
  const ImportOptions& options_;
  std::map<std::string, OnnxTensor> values_;    // values of bound inputs
  std::map<std::string, GivenInput> prepared_;  // inputs with another form
  Symbols symbols_;
  Builder builder_;
  ImportState state_;
  GraphImport main_;
  std::vector<Builder::Output> outputs_;
};

std::string stem(const std::string& path) {
  const size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (const size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  return identifier(name);
}

std::string written(const OnnxValueInfo& value, size_t axis) {
  const OnnxDim& dim = value.dims[axis];
  return dim.value >= 0       ? std::to_string(dim.value)
         : dim.symbol.empty() ? dim_at(value.name, axis)
                              : dim.symbol;
}

// A dimension without a name is called by its place in an input, and "?" in an output.
std::string declared_type(const OnnxValueInfo& value, bool input) {
  if (value.element_type == 0) return "not said";
  std::string text = value.kind == "tensor" ? "" : value.kind + " of ";
  const auto dtype = dtype_from_onnx(value.element_type);
  text += dtype ? dtype_name(*dtype) : element_type_name(value.element_type);
  if (!value.has_shape) return text + " of any shape";
  for (size_t axis = 0; axis < value.dims.size(); ++axis)
    text += (axis ? ", " : "[") +
            (input || value.dims[axis].value >= 0 || !value.dims[axis].symbol.empty()
                 ? written(value, axis)
                 : "?");
  return text + (value.dims.empty() ? "[]" : "]");
}

TensorSpec spec_of(const OnnxValueInfo& input) {
  TensorSpec spec{input.name, dtype_from_onnx(input.element_type).value_or(DType::f32), {}};
  for (size_t axis = 0; axis < input.dims.size(); ++axis) {
    const int64_t extent = input.dims[axis].value;
    spec.dims.push_back(extent >= 0 ? Expr(extent) : var(written(input, axis)));
  }
  return spec;
}

// Adds the file to the diags.
Error in_file(Error error, const std::string& path) {
  std::vector<Diag> diags = take_diags(std::move(error));
  for (Diag& diag : diags)
    if (diag.where.file.empty() && diag.code != DiagCode::io) diag.where.file = path;
  return make_error(std::move(diags));
}

}  // namespace
}  // namespace onnx_import

using namespace onnx_import;

Expected<Model> import_onnx(const std::string& path, const ImportOptions& options) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Expected<OnnxModel> loaded = load_model(file, path);
  if (!loaded) return in_file(loaded.takeError(), path);
  Importer importer(*loaded, options);
  if (Error error = importer.run()) return in_file(std::move(error), path);
  TW_TRY(importer.gaps().error(path));
  Model model;
  model.name = stem(path);
  Expected<Graph> graph = importer.finish(model.name);
  if (!graph) return in_file(with_names(graph.takeError(), importer.symbol_names()), path);
  model.graph = std::move(*graph);
  model.dims = importer.bound();
  model.symbol_names = importer.symbol_names();
  model.sha256 = sha256_hex(file->text());
  model.file_bytes = file->bytes().size();
  model.producer = loaded->producer;
  model.metadata = loaded->metadata;
  model.opset = loaded->opset;
  model.op_counts = loaded->op_counts;
  model.warnings = std::move(importer.warnings());
  return model;
}

Expected<ModelOutline> outline(const std::string& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Expected<OnnxModel> loaded = load_model(file, path);
  if (!loaded) return in_file(loaded.takeError(), path);
  ModelOutline out;
  out.name = stem(path);
  out.sha256 = sha256_hex(file->text());
  out.producer = loaded->producer;
  out.file_bytes = file->bytes().size();
  out.opset = loaded->opset;
  out.op_counts = loaded->op_counts;
  for (const OnnxValueInfo& input : loaded->graph.inputs) {
    out.inputs.push_back({input.name, declared_type(input, true)});
    if (input.kind == "tensor") out.shaped.push_back(spec_of(input));
  }
  for (size_t i = 0; i < loaded->graph.outputs.size(); ++i)
    out.outputs.push_back(
        {loaded->graph.outputs[i], declared_type(loaded->graph.declared[i], false)});
  return out;
}

int newest_opset() { return newest_onnx_opset(); }

std::vector<std::string> external_files(const std::string& path) {
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  Expected<std::vector<std::string>> paths =
      file ? external_paths(*file, path) : Expected<std::vector<std::string>>(file.takeError());
  if (paths) return std::move(*paths);
  llvm::consumeError(paths.takeError());
  return {};
}

Expected<std::vector<Gap>> gap_report(const std::string& path, const ImportOptions& options) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Expected<OnnxModel> loaded = load_model(file, path);
  if (!loaded) return in_file(loaded.takeError(), path);
  Importer importer(*loaded, options);
  if (Error error = importer.run()) return in_file(std::move(error), path);
  return importer.gaps().release();
}

}  // namespace tw
