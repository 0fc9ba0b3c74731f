#include "packager/header.h"

#include <algorithm>
#include <cctype>

#include "ir/dim_names.h"
#include "ir/storage_types.h"
#include "packager/c_expression.h"
#include "packager/reserved_names.h"
#include "runtime/embedded.h"

namespace tw {
namespace {

std::vector<std::string> macro_suffixes(size_t rank) {
  std::vector<std::string> suffixes{"", "_RANK", "_ELEMENTS", "_BYTES"};
  for (size_t d = 0; d < rank; ++d) suffixes.push_back("_DIM_" + std::to_string(d));
  return suffixes;
}

const char* c_type(DType t) {
  switch (t) {
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::f16: return "uint16_t";
    case DType::bf16: return "uint16_t";
    case DType::i8: return "int8_t";
    case DType::i16: return "int16_t";
    case DType::i32: return "int32_t";
    case DType::i64: return "int64_t";
    case DType::u8: return "uint8_t";
    case DType::u16: return "uint16_t";
    case DType::u32: return "uint32_t";
    case DType::u64: return "uint64_t";
    case DType::boolean: return "uint8_t";
    case DType::i4:
    case DType::i2: return "int8_t";
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::u4:
    case DType::u2: return "uint8_t";
    case DType::string: return "tw_string";
  }
  TW_UNREACHABLE("bad element type");
}

std::string upper(std::string s) {
  for (char& c : s) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return s;
}

std::string abi_type(DType t) { return "TW_" + upper(dtype_name(t)); }

// A name must not end the comment in which it stands.
std::string comment_text(const std::string& s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const bool ends = s[i] == '*' && ((i > 0 && s[i - 1] == '/') || s.substr(i + 1, 1) == "/");
    out += s[i] >= ' ' && s[i] <= '~' && s[i] != '\\' && s[i] != '?' && !ends ? s[i] : '_';
  }
  return out;
}

class HeaderWriter {
 public:
  explicit HeaderWriter(const ModelInterface& model)
      : model_(model),
        prefix_(model.prefix.empty() ? "tw_" + model.name : model.prefix),
        macro_(upper(prefix_)) {
    for (const std::string& s : model.symbols) symbols_.push_back(c_identifier(s, taken_));
    for (const InterfaceTensor& t : model.inputs)
      inputs_.push_back(c_identifier(t.name, taken_, t.dims.size()));
    for (const InterfaceTensor& t : model.outputs)
      outputs_.push_back(c_identifier(t.name, taken_, t.dims.size()));
  }

  std::string write() {
    const std::string guard = "TW_MODEL_" + upper(model_.name) + "_H";
    line("/* The model '{0}', compiled by Tilewright: link with its {1}. Do not edit. */",
         model_.name, model_.freestanding ? "object" : "library or load it");
    line("#ifndef {0}\n#define {0}\n", guard);
    if (model_.freestanding) return write_freestanding();
    out_ += public_header();
    line(
        "\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\nconst tw_api* tw_{0}_query(uint32_t "
        "version);\n#ifdef __cplusplus\n}\n#endif\n",
        model_.name);
    if (!model_.prefix.empty())
      line(
          "static inline const tw_api* {0}_query(uint32_t version) {{ return "
          "tw_{1}_query(version); }\n",
          prefix_, model_.name);
    write_macros();
    write_types();
    write_struct();
    write_sizes();
    write_create();
    write_run();
    line("#endif");
    return std::move(out_);
  }

 private:
  std::string write_freestanding() {
    line("#include <stddef.h>\n#include <stdint.h>\n\n{0}", status_declaration());
    line(
        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n"
        "/* One run, by the caller's thread and stack. It keeps nothing: runs at the same time "
        "need "
        "an arena\n   each, aligned to 64 bytes. TW_E_ARGUMENT: a null or misaligned pointer, or "
        "an "
        "index in the data that\n   is outside; TW_E_SHAPE: sizes that do not fit; TW_E_SIZE: the "
        "arena is too small. */\n"
        "int32_t tw_{0}_compute(const void* const* inputs, void* const* outputs, const int64_t* "
        "symbols,\n                   void* arena, size_t arena_bytes);\n"
        "#ifdef __cplusplus\n}\n#endif\n",
        model_.name);
    write_macros();
    write_types();
    write_struct();
    write_sizes();
    write_compute();
    line("#endif");
    return std::move(out_);
  }

  void write_compute() {
    line("static inline tw_status {0}_run(const {0}_io* io, void* arena, size_t arena_bytes) {{",
         prefix_);
    line("  const void* inputs[{0}];\n  void* outputs[{1}];", std::max<size_t>(inputs_.size(), 1),
         std::max<size_t>(outputs_.size(), 1));
    line("  int64_t symbols[{0}];", std::max<size_t>(symbols_.size(), 1));
    if (symbols_.empty()) line("  symbols[0] = 0;");
    for (size_t i = 0; i < symbols_.size(); ++i) line("  symbols[{0}] = io->{1};", i, symbols_[i]);
    for (size_t i = 0; i < inputs_.size(); ++i) line("  inputs[{0}] = io->{1};", i, inputs_[i]);
    for (size_t i = 0; i < outputs_.size(); ++i) line("  outputs[{0}] = io->{1};", i, outputs_[i]);
    if (inputs_.empty()) line("  inputs[0] = 0;");
    if (outputs_.empty()) line("  outputs[0] = 0;");
    if (inputs_.empty() && outputs_.empty()) line("  (void)io;");
    line("  return (tw_status)tw_{0}_compute(inputs, outputs, symbols, arena, arena_bytes);\n}",
         model_.name);
  }

  template <class... Args>
  void line(const char* format, Args&&... args) {
    out_ += llvm::formatv(format, std::forward<Args>(args)...).str() + "\n";
  }

  std::string dim_text(const InterfaceDim& d) const {
    switch (d.kind) {
      case InterfaceDim::Kind::fixed: return std::to_string(d.extent);
      case InterfaceDim::Kind::symbol: return model_.symbols[d.extent];
      case InterfaceDim::Kind::computed: return d.text;
    }
    TW_UNREACHABLE("bad dim");
  }
  std::string type_text(const InterfaceTensor& t) const {  // f32[batch,4], for instance
    std::string s = std::string(dtype_name(t.dtype)) + "[";
    for (size_t i = 0; i < t.dims.size(); ++i) s += (i ? "," : "") + dim_text(t.dims[i]);
    return comment_text(s + "]");
  }
  static std::optional<uint64_t> elements(const InterfaceTensor& t) {
    uint64_t n = 1;
    for (const InterfaceDim& d : t.dims) {
      if (d.kind != InterfaceDim::Kind::fixed) return std::nullopt;
      n *= static_cast<uint64_t>(d.extent);
    }
    return n;
  }

  void write_needs() {
    constexpr size_t kMost = 20;
    const size_t count = model_.needs.size();
    if (count == 0) return;
    line("/* A run with other sizes ends with TW_E_SHAPE:");
    for (size_t i = 0; i < std::min(count, kMost); ++i)
      line(" * {0}", comment_text(model_.needs[i]));
    if (count > kMost) line(" * and {0} more, which `tilewright inspect` lists", count - kMost);
    line(" */");
  }

  void write_macros() {
    const std::string& prefix = macro_;
    line("#define {0}_INPUTS {1}\n#define {0}_OUTPUTS {2}", prefix, model_.inputs.size(),
         model_.outputs.size());
    line("#define {0}_ALIGNMENT 64 /* of buffers, for speed; the element size will do */", prefix);
    if (model_.arena_bytes) line("#define {0}_ARENA_BYTES {1}", prefix, *model_.arena_bytes);
    if (model_.max_arena_bytes)
      line("#define {0}_MAX_ARENA_BYTES {1} /* of the largest sizes */", prefix,
           *model_.max_arena_bytes);
    if (model_.grows)
      line(
          "/* Data decide about sizes: a run may ask for memory besides the arena, which the "
          "context keeps. */");
    write_needs();
    const auto tensors = [&](const char* kind, const std::vector<InterfaceTensor>& list,
                             const std::vector<std::string>& names) {
      for (size_t i = 0; i < list.size(); ++i) {
        const std::string name = llvm::formatv("{0}_{1}_{2}", prefix, kind, upper(names[i])).str();
        line("\n/* '{0}': {1} */\n#define {2} {3}\n#define {2}_RANK {4}",
             comment_text(list[i].name), type_text(list[i]), name, i, list[i].dims.size());
        for (size_t d = 0; d < list[i].dims.size(); ++d)
          if (list[i].dims[d].kind == InterfaceDim::Kind::fixed)
            line("#define {0}_DIM_{1} {2}", name, d, list[i].dims[d].extent);
        if (const auto n = elements(list[i]))
          line("#define {0}_ELEMENTS {1}\n#define {0}_BYTES {2}", name, *n,
               *n * static_cast<uint64_t>(dtype_bytes(list[i].dtype)));
      }
    };
    tensors("INPUT", model_.inputs, inputs_);
    tensors("OUTPUT", model_.outputs, outputs_);
    line("");
  }

  void write_types() {
    const auto types = [&](const char* kind, const std::vector<InterfaceTensor>& list,
                           const std::vector<std::string>& names) {
      for (size_t i = 0; i < list.size(); ++i)
        line("typedef {0} {1}_{2}_{3}_t; /* an element of '{4}' */", c_type(list[i].dtype), prefix_,
             kind, names[i], comment_text(list[i].name));
    };
    types("input", model_.inputs, inputs_);
    types("output", model_.outputs, outputs_);
    line("");
  }

  void write_struct() {
    line("/* The arguments of a run. Buffers are dense and row-major. */\ntypedef struct {0}_io {{",
         prefix_);
    for (size_t i = 0; i < symbols_.size(); ++i)
      line("  int64_t {0}; /* the size '{1}' */", symbols_[i], comment_text(model_.symbols[i]));
    for (size_t i = 0; i < inputs_.size(); ++i)
      line("  const {0}* {1}; /* {2} */", c_type(model_.inputs[i].dtype), inputs_[i],
           type_text(model_.inputs[i]));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      line("  {0}* {1}; /* {2} */", c_type(model_.outputs[i].dtype), outputs_[i],
           type_text(model_.outputs[i]));
      if (!elements(model_.outputs[i]) && !model_.freestanding)
        line("  uint64_t {0}; /* size of that buffer */", size_field(i));
    }
    if (symbols_.empty() && inputs_.empty() && outputs_.empty()) line("  int nothing;");
    line("} {0}_io;\n", prefix_);
  }

  std::string size_field(size_t output) const { return outputs_[output] + "_bytes"; }

  // Statements that put the sizes in io into an array, as the interface's functions take them
  std::string symbol_values() const {
    std::string text =
        llvm::formatv("  int64_t symbols[{0}];\n", std::max<size_t>(symbols_.size(), 1)).str();
    for (size_t s = 0; s < symbols_.size(); ++s)
      text += llvm::formatv("  symbols[{0}] = io->{1};\n", s, symbols_[s]).str();
    return text + "  (void)io;\n  (void)symbols;\n";
  }

  // The C of an expression; nothing where data decide its value
  std::optional<CExpression> in_c(const Expr& e, const std::string& stem) const {
    const CVariable variable = [&](std::string_view name) -> std::optional<std::string> {
      const auto found = std::ranges::find(model_.variables, name);
      if (found == model_.variables.end()) return std::nullopt;
      return "io->" + symbols_[static_cast<size_t>(found - model_.variables.begin())];
    };
    return c_expression(e, variable, stem);
  }

  // Statements that fill dims[] of a tensor
  std::string dim_values(const char* kind, size_t index, const InterfaceTensor& t) const {
    if (!model_.freestanding)
      return symbol_values() +
             llvm::formatv("  api->{0}_dims({1}, symbols, dims);\n", kind, index).str();
    std::string constants, text;
    for (size_t d = 0; d < t.dims.size(); ++d) {
      const InterfaceDim& dim = t.dims[d];
      std::optional<CExpression> value;
      if (dim.kind == InterfaceDim::Kind::symbol)
        value = CExpression{"", "io->" + symbols_[static_cast<size_t>(dim.extent)]};
      else if (dim.kind == InterfaceDim::Kind::fixed)
        value = CExpression{"", std::to_string(dim.extent)};
      else if (dim.value.defined()) value = in_c(dim.value, "d" + std::to_string(d) + "_");
      constants += value ? value->statements : "";
      text += llvm::formatv("  dims[{0}] = {1};\n", d, value ? value->value : "-1").str();
    }
    return constants + "  (void)io;\n" + text;
  }

  std::string size_arguments() const {
    return (model_.freestanding ? "const " : "const tw_api* api, const ") + prefix_ + "_io* io";
  }

  // Writes functions for the extents and bytes that depend on symbols.
  void write_sizes() {
    if (model_.freestanding && !symbols_.empty()) out_ += c_expression_functions();
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!elements(model_.inputs[i])) write_dims("input", i, model_.inputs[i], inputs_[i]);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (!elements(model_.outputs[i])) {
        write_dims("output", i, model_.outputs[i], outputs_[i]);
        write_bytes(model_.outputs[i], outputs_[i]);
      }
    if (!symbols_.empty()) write_arena();
  }

  void write_dims(const char* kind, size_t index, const InterfaceTensor& t,
                  const std::string& name) {
    line(
        "/* Extents of '{0}': {1} for the sizes in io; negative where data decide. */\n"
        "static inline void {2}_{3}_{4}_dims({5}, int64_t* dims) {{\n{6}}\n",
        comment_text(t.name), type_text(t), prefix_, kind, name, size_arguments(),
        dim_values(kind, index, t));
  }

  void write_bytes(const InterfaceTensor& t, const std::string& name) {
    line(
        "/* Bytes of '{0}': {1} for the sizes in io; UINT64_MAX where data decide. */\n"
        "static inline uint64_t {2}_output_{3}_bytes({4}) {{\n"
        "  int64_t dims[{5}];\n  uint64_t bytes = {6}u;\n  int i;\n"
        "  {2}_output_{3}_dims({7}io, dims);\n"
        "  for (i = 0; i < {5}; ++i) {{\n    if (dims[i] < 0) return UINT64_MAX;\n"
        "    bytes *= (uint64_t)dims[i];\n  }\n  return bytes;\n}\n",
        comment_text(t.name), type_text(t), prefix_, name, size_arguments(), t.dims.size(),
        dtype_bytes(t.dtype), model_.freestanding ? "" : "api, ");
  }

  void write_arena() {
    const bool readable = !model_.arena_text.empty() &&
                          model_.arena_text.size() <= kReadableColumns;
    const std::string comment = "/* Bytes of working memory of a run with the sizes in io" +
                                (readable ? ":\n   " + comment_text(model_.arena_text) : "") +
                                " */";
    std::string body = symbol_values() + "  return api->arena_bytes(symbols);\n";
    if (model_.freestanding) {
      const auto bytes = model_.arena.defined() ? in_c(model_.arena, "b") : std::nullopt;
      if (!bytes) return;
      body = bytes->statements + "  (void)io;\n  return (uint64_t)" + bytes->value + ";\n";
    }
    line("{0}\nstatic inline uint64_t {1}_arena_bytes({2}) {{\n{3}}\n", comment, prefix_,
         size_arguments(), body);
  }

  void write_create() {
    line("/* A context for `threads` threads; 0: as many as the process may use. */");
    line(
        "static inline tw_status {0}_create(const tw_api* api, int32_t threads, tw_context** "
        "context) {{\n"
        "  tw_options options = {{0, 0, 0, 0, 0, 0, 0, 0, 0};\n  options.size = (uint32_t)sizeof "
        "options;\n  options.threads = threads;\n"
        "  return api->create(&options, context);\n}\n",
        prefix_);
  }

  // Writes statements that fill one tw_tensor, `array`[index].
  void write_tensor(const char* array, size_t index, const InterfaceTensor& t,
                    const std::string& field, bool output) {
    const std::string target = llvm::formatv("{0}[{1}]", array, index).str();
    const auto n = elements(t);
    const uint64_t element = static_cast<uint64_t>(dtype_bytes(t.dtype));
    // The cast drops const: inputs are only read, but share the struct with outputs.
    line("  {0}.data = (void*)io->{1};", target, field);
    line("  {0}.dtype = {1};\n  {0}.rank = {2};", target, abi_type(t.dtype), t.dims.size());
    if (output) {
      line("  {0}.dims = 0;", target);
      if (n) line("  {0}.bytes = {1}u;", target, *n * element);
      else line("  {0}.bytes = io->{1};", target, size_field(index));
      return;
    }
    std::string bytes = std::to_string(element) + "u";
    if (!n) line("  api->input_dims({0}, symbols, dims{0});", index);
    for (size_t d = 0; d < t.dims.size(); ++d) {
      if (n) line("  dims{0}[{1}] = {2};", index, d, t.dims[d].extent);
      bytes += llvm::formatv(" * (uint64_t)dims{0}[{1}]", index, d).str();
    }
    line("  {0}.dims = {1};", target, t.dims.empty() ? "0" : llvm::formatv("dims{0}", index).str());
    line("  {0}.bytes = {1};", target, bytes);
  }

  void write_run() {
    line(
        "static inline tw_status {0}_run(const tw_api* api, tw_context* context, const {0}_io* io) "
        "{{",
        prefix_);
    line("  tw_tensor inputs[{0}], outputs[{1}];", std::max<size_t>(inputs_.size(), 1),
         std::max<size_t>(outputs_.size(), 1));
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!model_.inputs[i].dims.empty())
        line("  int64_t dims{0}[{1}];", i, model_.inputs[i].dims.size());
    if (!symbols_.empty()) line("  int64_t symbols[{0}];", symbols_.size());
    for (size_t i = 0; i < symbols_.size(); ++i) line("  symbols[{0}] = io->{1};", i, symbols_[i]);
    if (!symbols_.empty()) line("  (void)symbols;");
    for (size_t i = 0; i < inputs_.size(); ++i)
      write_tensor("inputs", i, model_.inputs[i], inputs_[i], false);
    for (size_t i = 0; i < outputs_.size(); ++i)
      write_tensor("outputs", i, model_.outputs[i], outputs_[i], true);
    if (inputs_.empty() && outputs_.empty()) line("  (void)io;");
    line("  return api->run(context, inputs, outputs);\n}");
  }

  const ModelInterface& model_;
  const std::string prefix_, macro_;  // prefix_ begins functions and types, macro_ begins macros
  std::vector<std::string> taken_, symbols_, inputs_, outputs_;
  std::string out_;
};

}  // namespace

std::string c_identifier(const std::string& name, std::vector<std::string>& taken, size_t rank) {
  std::string id = identifier(name);
  if (is_reserved_name(id)) id = id[0] == '_' ? "x" + id : id + "_";
  // Macros are in upper case, so names that differ only in case would clash.
  const std::vector<std::string> suffixes = macro_suffixes(rank);
  const auto is_taken = [&](const std::string& unique) {
    return std::ranges::any_of(suffixes, [&](const std::string& suffix) {
      return std::ranges::find(taken, upper(unique + suffix)) != taken.end();
    });
  };
  std::string unique = id;
  for (int i = 2; is_taken(unique); ++i) unique = id + "_" + std::to_string(i);
  for (const std::string& suffix : suffixes) taken.push_back(upper(unique + suffix));
  return unique;
}

std::string write_header(const ModelInterface& model) { return HeaderWriter(model).write(); }

}  // namespace tw
