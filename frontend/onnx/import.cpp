// import_onnx and gap_report: binds the inputs' dimensions, runs the importers over the nodes, and collects what they refuse.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "frontend/frontend.h"
#include "frontend/onnx/gaps.h"
#include "frontend/onnx/import_table.h"
#include "frontend/onnx/node_import.h"
#include "support/hash.h"

namespace tw {
namespace onnx_import {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 40;

std::string identifier(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_', digit = c >= '0' && c <= '9';
    if (digit && out.empty()) out += '_';
    out += letter || digit ? c : '_';
  }
  return out.empty() ? "_" : out;
}

std::string full_name(const OnnxNode& node) { return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type; }

// The symbols of a model's inputs: as written, and as identifiers of our own.
class Symbols {
 public:
  Symbols(const OnnxModel& model, const ImportOptions& options) : options_(options) {
    for (const OnnxValueInfo& input : model.inputs)
      for (size_t axis = 0; axis < input.dims.size(); ++axis)
        if (input.dims[axis].value < 0) intern(written(input, axis));
  }

  // Names in the options that the model does not have, and values that are no extents.
  Error check() const {
    std::string names;
    for (const std::string& name : order_) names += (names.empty() ? "" : ", ") + name;
    std::vector<Diag> problems;
    for (const auto& [name, value] : options_.dims) {
      if (!names_.count(name) && !own_.count(name))
        problems.push_back({DiagCode::invalid_argument,
                            "the model has no dimension '" + name + "'; it has " + (names.empty() ? "only static ones" : names), {}, {}});
      else if (value < 1 || value > kMaxDim)
        problems.push_back({DiagCode::invalid_argument, "dimension '" + name + "' cannot be " + std::to_string(value), {}, {}});
    }
    return make_error(std::move(problems));
  }

  Expr dim(const OnnxValueInfo& input, size_t axis, Builder& builder) const {
    const OnnxDim& dim = input.dims[axis];
    if (dim.value >= 0) return dim.value;
    const std::string name = written(input, axis), own = names_.at(name);
    for (const std::string& key : {name, own})
      if (auto bound = options_.dims.find(key); bound != options_.dims.end()) return bound->second;
    builder.add_symbol(own);
    return var(own);
  }

 private:
  static std::string written(const OnnxValueInfo& input, size_t axis) {
    const OnnxDim& dim = input.dims[axis];
    return dim.symbol.empty() ? identifier(input.name) + "_" + std::to_string(axis) : dim.symbol;
  }
  void intern(const std::string& name) {
    if (names_.count(name)) return;
    std::string own = identifier(name);
    for (int suffix = 2; own_.count(own); ++suffix) own = identifier(name) + "_" + std::to_string(suffix);
    own_.insert(own);
    names_[name] = own;
    order_.push_back(own);
  }

  const ImportOptions& options_;
  std::map<std::string, std::string> names_;
  std::set<std::string> own_;
  std::vector<std::string> order_;
};

class Importer {
 public:
  Importer(const OnnxModel& model, const ImportOptions& options) : model_(model), symbols_(model, options) {}

  Error run() {
    TW_TRY(symbols_.check());
    import_inputs();
    import_initializers();
    find_wanted();
    for (size_t i = 0; i < model_.nodes.size(); ++i)
      if (live_[i]) import_node(model_.nodes[i]);
    std::set<std::string> names;
    for (const std::string& output : model_.outputs) {
      const auto found = values_.find(output);
      if (!names.insert(output).second)
        gaps_.add(DiagCode::invalid_model, "output", "output '" + output + "' is listed twice", "", output);
      else if (found == values_.end())
        gaps_.add(DiagCode::invalid_model, "output", "no node makes output '" + output + "'", "", output);
      else if (found->second.valid())
        outputs_.push_back({output, found->second});
    }
    return Error::success();
  }

  Gaps& gaps() { return gaps_; }
  Expected<Graph> finish(const std::string& name) { return builder_.finish(name, outputs_); }

 private:
  void poison(const std::string& value) { values_[value] = Val{}; }

  void import_inputs() {
    for (const OnnxValueInfo& input : model_.inputs) {
      poison(input.name);
      const auto dtype = dtype_from_onnx(input.element_type);
      if (input.kind != "tensor") {
        gaps_.add(DiagCode::unsupported, "input", "type " + input.kind, "only tensors can be inputs", input.name);
      } else if (!dtype) {
        gaps_.add(DiagCode::unsupported, "input", "dtype " + element_type_name(input.element_type),
                  "convert the model to float32 or an integer type", input.name);
      } else if (!input.has_shape) {
        gaps_.add(DiagCode::unsupported, "input", "no shape, not even a rank", "give the input a shape when exporting", input.name);
      } else if (std::optional<Shape> shape = input_shape(input)) {
        values_[input.name] = builder_.add_input(input.name, {*dtype, std::move(*shape), {}});
      }
    }
  }

  std::optional<Shape> input_shape(const OnnxValueInfo& input) {
    Shape shape;
    int64_t count = 1;
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      shape.push_back(symbols_.dim(input, axis, builder_));
      const int64_t extent = std::max<int64_t>(1, as_const(shape.back()).value_or(1));
      if (extent > kMaxDim / count) {
        gaps_.add(DiagCode::limit, "input", "more than 2^40 elements", "", input.name);
        return std::nullopt;
      }
      count *= extent;
    }
    return shape;
  }

  void import_initializers() {
    for (const OnnxTensor& tensor : model_.initializers) {
      poison(tensor.name);
      if (const auto dtype = tensor.dtype())
        values_[tensor.name] =
            builder_.add_constant(tensor.name, {*dtype, Shape(tensor.dims.begin(), tensor.dims.end()), {}}, tensor.data);
      else
        initializer_types_[tensor.name] = tensor.element_type;
    }
  }

  // Values that the outputs need, backwards over the sorted nodes.
  void find_wanted() {
    wanted_.insert(model_.outputs.begin(), model_.outputs.end());
    live_.assign(model_.nodes.size(), false);
    for (size_t i = model_.nodes.size(); i-- > 0;) {
      const OnnxNode& node = model_.nodes[i];
      live_[i] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& o) { return wanted_.count(o) > 0; });
      if (live_[i]) wanted_.insert(node.inputs.begin(), node.inputs.end());
    }
    wanted_.erase("");
  }

  void import_node(const OnnxNode& node) {
    for (const std::string& output : node.outputs) poison(output);
    const ImportRow* row = find_importer(node.domain, node.op_type, node.since_version);
    if (!row) return report_unsupported(node);
    std::vector<Val> inputs;
    bool poisoned = false;
    for (const std::string& input : node.inputs) {
      const auto found = values_.find(input);
      inputs.push_back(found == values_.end() ? Val{} : found->second);
      if (input.empty()) continue;
      if (found == values_.end())
        gaps_.add(DiagCode::invalid_model, full_name(node), "no node before makes input '" + input + "'",
                  "the model breaks the ONNX standard: export it again", node.name);
      else if (const auto type = initializer_types_.find(input); type != initializer_types_.end())
        gaps_.add(DiagCode::unsupported, full_name(node), "dtype " + element_type_name(type->second),
                  "convert the model to float32 or an integer type", node.name);
      poisoned = poisoned || !inputs.back().valid();
    }
    if (!poisoned) run_importer(node, *row, std::move(inputs));
  }

  void run_importer(const OnnxNode& node, const ImportRow& row, std::vector<Val> inputs) {
    std::vector<bool> wanted;
    for (const std::string& output : node.outputs) wanted.push_back(wanted_.count(output) > 0);
    NodeImport context(builder_, node, std::move(inputs), std::move(wanted));
    row.import(context, row.param);
    for (size_t i = 0; i < node.outputs.size() && !context.failed(); ++i)
      if (context.wanted(i) && !context.outputs()[i].valid())
        context.fail(llvm::formatv("output {0} is not supported", i).str(), "remove the uses of this output");
    if (const auto& problem = context.problem()) {
      gaps_.add(problem->code, full_name(node), problem->text, problem->advice, node.name);
      return;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Val value = context.outputs()[i];
      if (!value.valid() || node.outputs[i].empty()) continue;
      builder_.set_name(value, node.outputs[i]);
      values_[node.outputs[i]] = value;
    }
  }

  void report_unsupported(const OnnxNode& node) {
    std::string problem = "operator not supported", advice = "replace it by supported operators, or leave this part out of the model";
    if (!node.domain.empty() && node.since_version == 0) {
      problem = "operator of domain " + node.domain + " not supported";
      advice = "export with standard operators, or with model-local functions for it";
    } else if (node.since_version == 0) {
      problem = "no such operator at this opset";
    } else if (const ImportRow* row = find_importer_any_version(node.domain, node.op_type)) {
      problem = llvm::formatv("version {0} of the operator not supported", node.since_version).str();
      advice = llvm::formatv("export at an opset where the operator's version is {0} to {1}", row->first, row->last).str();
    }
    gaps_.add(DiagCode::unsupported, full_name(node), problem, advice, node.name);
  }

  const OnnxModel& model_;
  Symbols symbols_;
  Builder builder_;
  Gaps gaps_;
  std::unordered_map<std::string, Val> values_;      // invalid: its maker was reported
  std::map<std::string, int> initializer_types_;     // of those without a DType
  std::set<std::string> wanted_;
  std::vector<bool> live_;
  std::vector<Builder::Output> outputs_;
};

std::string stem(const std::string& path) {
  const size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (const size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  return identifier(name);
}

// The same diags, with the file they are about.
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
  if (!graph) return in_file(graph.takeError(), path);
  model.graph = std::move(*graph);
  model.sha256 = sha256_hex(file->text());
  model.file_bytes = file->bytes().size();
  model.producer = loaded->producer;
  model.opset = loaded->opset;
  model.op_counts = loaded->op_counts;
  return model;
}

Expected<std::vector<Gap>> gap_report(const std::string& path, const ImportOptions& options) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Expected<OnnxModel> loaded = load_model(file, path);
  if (!loaded) return in_file(loaded.takeError(), path);
  Importer importer(*loaded, options);
  if (Error error = importer.run()) return in_file(std::move(error), path);
  return importer.gaps().take();
}

}  // namespace tw
