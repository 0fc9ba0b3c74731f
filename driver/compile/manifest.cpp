#include "driver/compile/manifest.h"

#include <algorithm>
#include <filesystem>

#include "ir/kernel/loads.h"
#include "runtime/tilewright.h"
#include "support/dates.h"

namespace tw {
namespace {

ManifestTensor describe(const TensorSpec& spec, const SymbolNames& names) {
  ManifestTensor t{spec.name, dtype_name(spec.dtype), {}};
  for (const Expr& dim : spec.dims) t.dims.push_back(to_string(dim, names));
  return t;
}

// The operands' bytes are all that is known of a runtime function.
ManifestCall describe_extern(const KernelCall& call) {
  Expr bytes = 0;
  for (const auto* views : {&call.function->inputs, &call.function->outputs})
    for (const ExternCall::View& view : *views)
      if (view.argument >= 0)
        bytes = bytes + element_count(view.dims) * Expr(dtype_bytes(view.dtype));
  return {
      -1, call.name, "0", "0", to_string(simplify_dim(bytes)), "0", 0, 0, call.function->function};
}

ManifestCall describe(const Program& program, const KernelCall& call,
                      const std::vector<Expr>& loaded, const std::vector<SharedWork>& shared) {
  if (call.function) return describe_extern(call);
  const Kernel& kernel = program.kernels[static_cast<size_t>(call.kernel)];
  const Work& work = program.work[static_cast<size_t>(call.kernel)];
  auto text = [&](Expr e) {
    for (size_t s = 0; s < kernel.symbols.size(); ++s)
      e = substitute(e, kernel.symbols[s], call.symbols[s]);
    return to_string(e);
  };
  ManifestCall out{call.kernel,
                   call.name,
                   text(work.flops),
                   text(work.weight_bytes),
                   text(work.tensor_bytes),
                   text(loaded[static_cast<size_t>(call.kernel)]),
                   call.device,
                   call.from};
  const SharedWork& threads = shared[static_cast<size_t>(call.kernel)];
  out.operations = text(threads.operations);
  for (const SharedLoop& loop : threads.loops)
    out.loops.push_back(
        {text(loop.iterations), text(loop.most_parts), text(loop.entries), text(loop.operations)});
  return out;
}

std::vector<ManifestCall> calls_of(const Program& program, const Target& target) {
  std::vector<ManifestCall> calls;
  std::vector<Expr> loaded;
  std::vector<SharedWork> shared;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    loaded.push_back(loaded_bytes(program.kernels[i]));
    shared.push_back(shared_work(program.kernels[i], program.work[i], target));
  }
  for (const KernelCall& c : program.calls) calls.push_back(describe(program, c, loaded, shared));
  return calls;
}

Json tensors_json(const std::vector<ManifestTensor>& list) {
  Json::Array out;
  for (const ManifestTensor& t : list)
    out.push_back(Json::Object{{"name", t.name}, {"dtype", t.dtype}, {"dims", json_array(t.dims)}});
  return out;
}

Json::Object call_json(const ManifestCall& c, bool devices) {
  Json::Object call{{"kernel", c.kernel},
                    {"name", c.name},
                    {"flops", c.flops},
                    {"weight_bytes", c.weight_bytes},
                    {"tensor_bytes", c.tensor_bytes},
                    {"loaded_bytes", c.loaded_bytes}};
  if (devices) call.push_back({"device", c.device}), call.push_back({"from", c.from});
  if (!c.function.empty()) call.push_back({"function", c.function});
  if (!c.operations.empty()) call.push_back({"operations", c.operations});
  Json::Array loops;
  for (const ManifestLoop& loop : c.loops)
    loops.push_back(Json::Object{{"iterations", loop.iterations},
                                 {"most_parts", loop.most_parts},
                                 {"entries", loop.entries},
                                 {"operations", loop.operations}});
  if (!loops.empty()) call.push_back({"parallel", loops});
  return call;
}

template <class T>
Json::Object object_of(const std::map<std::string, T>& members) {
  Json::Object out;
  for (const auto& [name, value] : members) out.push_back({name, value});
  return out;
}

Json::Object kernel_json(const ManifestKernel& k) {
  Json::Object kernel{{"name", k.name},
                      {"hash", k.hash},
                      {"code_bytes", k.code_bytes},
                      {"spills", k.spills},
                      {"reloads", k.reloads},
                      {"registers", k.registers},
                      {"stack_bytes", k.stack_bytes},
                      {"shared_bytes", k.shared_bytes},
                      {"schedule", k.schedule}};
  if (!k.tuned.empty()) kernel.push_back({"tuned", k.tuned});
  if (k.multiplies != DType::f32) kernel.push_back({"multiplies", dtype_name(k.multiplies)});
  if (k.instructions)
    kernel.push_back({"instructions", k.instructions}), kernel.push_back({"cycles", k.cycles});
  return kernel;
}

ManifestKernel kernel_from(const Json& k) {
  ManifestKernel kernel{k["name"].text_or_empty(),       k["hash"].text_or_empty(),
                        k["code_bytes"].integer_or(0),   k["spills"].integer_or(0),
                        k["reloads"].integer_or(0),      k["registers"].integer_or(0),
                        k["stack_bytes"].integer_or(0),  k["shared_bytes"].integer_or(0),
                        k["instructions"].integer_or(0), k["cycles"].integer_or(0)};
  if (const std::string* schedule = k["schedule"].text()) kernel.schedule = *schedule;
  kernel.tuned = k["tuned"].text_or_empty();
  kernel.multiplies = dtype_from_name(k["multiplies"].text_or_empty()).value_or(DType::f32);
  return kernel;
}

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list.items()) out.push_back(item.text_or_empty());
  return out;
}

ManifestCall call_from(const Json& c) {
  ManifestCall call{static_cast<int>(c["kernel"].integer_or(-1)),
                    c["name"].text_or_empty(),
                    c["flops"].text_or_empty(),
                    c["weight_bytes"].text_or_empty(),
                    c["tensor_bytes"].text_or_empty(),
                    c["loaded_bytes"].text_or_empty(),
                    static_cast<int>(c["device"].integer_or(0)),
                    static_cast<int>(c["from"].integer_or(0)),
                    c["function"].text_or_empty(),
                    c["operations"].text_or_empty()};
  if (!call.function.empty()) call.kernel = -1;
  for (const Json& loop : c["parallel"].items())
    call.loops.push_back({loop["iterations"].text_or_empty(), loop["most_parts"].text_or_empty(),
                          loop["entries"].text_or_empty(), loop["operations"].text_or_empty()});
  return call;
}

std::vector<ManifestTensor> tensors(const Json& list) {
  std::vector<ManifestTensor> out;
  for (const Json& t : list.items())
    out.push_back({t["name"].text_or_empty(), t["dtype"].text_or_empty(), texts(t["dims"])});
  return out;
}

uint64_t bytes(const Json& v) { return static_cast<uint64_t>(v.integer_or(0)); }

Expected<GivenInputs> given_of(const Json& json) {
  GivenInputs given;
  TW_ASSIGN(given.forms, parse_input_forms(json["input_forms"].text_or_empty()));
  if (const Json::Object* values = json["bound_inputs"].object())
    for (const Json::Member& v : *values) given.values[v.key] = texts(v.value);
  return given;
}

AlgorithmOptions algorithms_of(const Json& json) {
  AlgorithmOptions options;
  options.max_weight_growth = json["max_weight_growth"].number_or(options.max_weight_growth);
  options.only = algorithm_from_name(json["algorithm"].text_or_empty());
  if (const Json::Object* settled = json["settled"].object())
    for (const Json::Member& layer : *settled)
      if (const auto algorithm = algorithm_from_name(layer.value.text_or_empty()))
        options.settled[layer.key] = *algorithm;
  for (const std::string& layer : texts(json["exact"])) options.exact.insert(layer);
  return options;
}

Expected<QuantizedRounding> rounding_of(const Json& json) {
  const std::string name = json["quantized_rounding"].text_or_empty();
  if (name.empty()) return QuantizedRounding::standard;
  const std::optional<QuantizedRounding> rounding = quantized_rounding_from_name(name);
  if (!rounding)
    return make_error(DiagCode::invalid_argument,
                      "the manifest's quantized_rounding '{0}' is none of {1}", name,
                      quantized_rounding_names());
  return *rounding;
}

std::optional<Verified> verified_from(const Json& json) {
  if (!json.object()) return std::nullopt;
  return Verified{json["data"].text_or_empty(), json["tolerance"].number_or(0)};
}

SymbolLimitsOf limits_from(const Json& json) {
  SymbolLimitsOf out;
  if (const Json::Object* limits = json.object())
    for (const Json::Member& l : *limits)
      if (const auto& list = l.value.items(); list.size() == 2 || list.size() == 3)
        out[l.key] = {list[0].integer_or(1), list[1].integer_or(INT64_MAX),
                      list.size() == 3 ? list[2].integer_or(1) : 1};
  return out;
}

Expected<Manifest> manifest_from(const Json& json, const std::string& file) {
  Manifest m;
  m.compiler = json["tilewright"].text_or_empty();
  m.name = json["name"].text_or_empty();
  const Json& model = json["model"];
  m.model_sha256 = model["sha256"].text_or_empty();
  m.model_bytes = bytes(model["bytes"]);
  m.opset = model["opset"].integer_or(0);
  m.producer = model["producer"].text_or_empty();
  if (const Json::Object* metadata = json["metadata"].object())
    for (const Json::Member& p : *metadata) m.metadata[p.key] = p.value.text_or_empty();
  const Json& target = json["target"];
  m.target_name = target["name"].text_or_empty();
  m.target_hash = target["hash"].text_or_empty();
  m.target_yaml = target["yaml"].text_or_empty();
  if (const Json::Object* dims = json["options"]["dims"].object())
    for (const Json::Member& d : *dims) m.dims[d.key] = d.value.integer_or(0);
  TW_ASSIGN(m.given, given_of(json));
  TW_ASSIGN(m.rounding, rounding_of(json["options"]));
  m.pipeline = texts(json["options"]["passes"]);
  m.algorithms = algorithms_of(json["options"]);
  m.symbols = texts(json["symbols"]);
  m.identifiers = texts(json["identifiers"]);
  if (const Json::Object* example = json["example"].object())
    for (const Json::Member& size : *example) m.example[size.key] = size.value.integer_or(1);
  m.inputs = tensors(json["inputs"]);
  m.outputs = tensors(json["outputs"]);
  const Json& memory = json["memory"];
  m.weight_bytes = bytes(memory["weights"]);
  m.naive_arena_bytes = bytes(memory["arena_naive"]);
  m.weights_file = json["weights_file"].text_or_empty();
  m.arena_bytes = memory["arena"].text_or_empty();
  m.limits = limits_from(json["limits"]);
  m.needs = texts(json["needs"]);
  if (const uint64_t most = bytes(json["max_arena_bytes"])) m.max_arena_bytes = most;
  for (const Json& path : json["fast_paths"].items())
    if (std::map<std::string, int64_t>& sizes = m.fast_paths.emplace_back(); path.object())
      for (const Json::Member& size : *path.object()) sizes[size.key] = size.value.integer_or(0);
  m.verified = verified_from(json["verified"]);
  m.grows = json["grows"].boolean() && *json["grows"].boolean();
  for (const Json& k : json["kernels"].items()) m.kernels.push_back(kernel_from(k));
  m.devices = texts(json["devices"]);
  m.device_notes = texts(json["device_notes"]);
  for (const Json& c : json["calls"].items()) {
    const int64_t kernel = c["kernel"].integer_or(-1);
    const std::string function = c["function"].text_or_empty();
    if ((kernel < 0 && function.empty()) || kernel >= static_cast<int64_t>(m.kernels.size()))
      return make_error(DiagCode::parse, "'{0}': the manifest's call {1} names no kernel", file,
                        m.calls.size());
    m.calls.push_back(call_from(c));
    if (std::max(m.calls.back().device, m.calls.back().from) > static_cast<int>(m.devices.size()) ||
        std::min(m.calls.back().device, m.calls.back().from) < 0)
      return make_error(DiagCode::parse, "'{0}': the manifest's call {1} names no device", file,
                        m.calls.size() - 1);
  }
  return m;
}

std::vector<ManifestKernel> kernels_in(const Program& program, const CompileReport& report) {
  std::vector<ManifestKernel> kernels;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    ManifestKernel k{program.kernels[i].name, kernel_hash(program.kernels[i]).substr(0, 16)};
    k.multiplies = multiplied_type(program.kernels[i]);
    if (i < report.kernel_reports.size()) {
      k.code_bytes = report.kernel_reports[i].code_bytes;
      k.spills = report.kernel_reports[i].spills;
      k.reloads = report.kernel_reports[i].reloads;
      k.instructions = report.kernel_reports[i].instructions;
      k.cycles = report.kernel_reports[i].cycles;
      k.registers = report.kernel_reports[i].registers;
      k.stack_bytes = report.kernel_reports[i].stack_bytes;
      k.shared_bytes = report.kernel_reports[i].shared_bytes;
    }
    if (i < report.schedules.size()) k.schedule = source_of(report.schedules[i]);
    if (i < report.schedules.size() && report.schedules[i].tuned) {
      k.tuned = date_text(report.schedules[i].time);
    }
    kernels.push_back(std::move(k));
  }
  return kernels;
}

}  // namespace

Manifest make_manifest(const Model& model, const Program& program, const Target& target,
                       const std::string& symbol, const CompileOptions& options,
                       const CompileReport& report) {
  Manifest m;
  m.compiler = TW_VERSION;
  m.name = symbol;
  m.model_sha256 = model.sha256;
  m.model_bytes = model.file_bytes;
  m.producer = model.producer;
  m.metadata = model.metadata;
  m.opset = model.opset;
  m.target_name = target.name;
  m.target_hash = codegen_hash(target);
  Target described = target;  // the first of several: calls and kernels are for it
  described.isa.clear();
  described.wider.clear();
  m.target_yaml = print(described);
  m.dims = model.dims, m.given = options.given;
  m.rounding = options.rounding;
  m.pipeline = options.pipeline;
  m.algorithms = options.algorithms;
  m.algorithms.exact = report.exact;
  const auto name_of = [&](const std::string& symbol) {
    return symbol_name(model.symbol_names, symbol);
  };
  for (const std::string& symbol : program.symbols)
    m.symbols.push_back(name_of(symbol)), m.identifiers.push_back(symbol);
  for (const TensorSpec& t : program.inputs) m.inputs.push_back(describe(t, model.symbol_names));
  for (const TensorSpec& t : program.outputs) m.outputs.push_back(describe(t, model.symbol_names));
  for (const auto& [symbol, size] : report.example) m.example[name_of(symbol)] = size;
  m.weight_bytes = program.weight_bytes;
  m.weights_file = std::filesystem::path(options.weights).filename().string();
  m.naive_arena_bytes = report.naive_arena_bytes;
  m.arena_bytes = to_string(report.arena_bytes);
  if (const auto most = program.max_arena_bytes.defined() ? as_const(program.max_arena_bytes)
                                                          : std::nullopt)
    m.max_arena_bytes = static_cast<uint64_t>(*most);
  for (const auto& [symbol, limits] : program.limits) m.limits[name_of(symbol)] = limits;
  m.needs = program.needs;
  for (const FastPath& path : program.fast_paths) {
    std::map<std::string, int64_t>& sizes = m.fast_paths.emplace_back();
    for (const auto& [symbol, size] : path.sizes) sizes[name_of(symbol)] = size;
  }
  m.verified = options.verified;
  m.grows = program.growable_buffers > 0;
  m.kernels = kernels_in(program, report);
  for (const Target& device : target.devices) m.devices.push_back(device.name);
  m.device_notes = report.device_notes;
  m.calls = calls_of(program, target);
  return m;
}

std::vector<TensorSpec> input_specs(const Manifest& manifest) {
  std::vector<TensorSpec> specs;
  for (const ManifestTensor& t : manifest.inputs) {
    TensorSpec& spec = specs.emplace_back();
    spec.name = t.name;
    spec.dtype = dtype_from_name(t.dtype).value_or(DType::f32);
    for (const std::string& dim : t.dims) {
      const bool number = !dim.empty() && dim.size() < 19 &&
                          dim.find_first_not_of("0123456789") == std::string::npos;
      spec.dims.push_back(number ? Expr(int64_t{std::stoll(dim)})
                          : std::ranges::count(manifest.symbols, dim) ? var(dim)
                                                                      : Expr());
    }
  }
  return specs;
}

static void add_given(const GivenInputs& given, Json::Object& all) {
  if (!given.forms.yaml.empty()) all.push_back({"input_forms", given.forms.yaml});
  Json::Object values;
  for (const auto& [name, list] : given.values) values.push_back({name, json_array(list)});
  if (!values.empty()) all.push_back({"bound_inputs", values});
}

static Json::Object options_json(const Manifest& m) {
  const AlgorithmOptions& algorithms = m.algorithms;
  Json::Object options{{"dims", object_of(m.dims)},
                       {"passes", json_array(m.pipeline)},
                       {"max_weight_growth", algorithms.max_weight_growth},
                       {"algorithm", algorithms.only ? algorithm_name(*algorithms.only) : ""}};
  Json::Object settled;
  for (const auto& [layer, algorithm] : algorithms.settled)
    settled.push_back({layer, algorithm_name(algorithm)});
  if (!settled.empty()) options.push_back({"settled", settled});
  if (m.rounding != QuantizedRounding::standard)
    options.push_back({"quantized_rounding", quantized_rounding_name(m.rounding)});
  if (!algorithms.exact.empty()) options.push_back({"exact", json_array(algorithms.exact)});
  return options;
}

Json to_json(const Manifest& m) {
  Json::Array kernels, calls;
  for (const ManifestKernel& k : m.kernels) kernels.push_back(kernel_json(k));
  for (const ManifestCall& c : m.calls) calls.push_back(call_json(c, !m.devices.empty()));
  Json::Object all{
      {"tilewright", m.compiler},
      {"abi", static_cast<int>(TW_ABI_VERSION)},
      {"name", m.name},
      {"model", Json::Object{{"sha256", m.model_sha256},
                             {"bytes", m.model_bytes},
                             {"opset", m.opset},
                             {"producer", m.producer}}},
      {"target",
       Json::Object{{"name", m.target_name}, {"hash", m.target_hash}, {"yaml", m.target_yaml}}},
      {"options", options_json(m)},
      {"symbols", json_array(m.symbols)},
      {"identifiers", json_array(m.identifiers)},
      {"inputs", tensors_json(m.inputs)},
      {"outputs", tensors_json(m.outputs)},
      {"memory", Json::Object{{"weights", m.weight_bytes},
                              {"arena", m.arena_bytes},
                              {"arena_naive", m.naive_arena_bytes}}},
      {"kernels", kernels},
      {"calls", calls},
  };
  if (!m.metadata.empty()) all.push_back({"metadata", object_of(m.metadata)});
  add_given(m.given, all);
  if (!m.example.empty()) all.push_back({"example", object_of(m.example)});
  Json::Object limits;
  for (const auto& [symbol, range] : m.limits)
    limits.push_back({symbol, range.step > 1 ? Json::Array{range.least, range.most, range.step}
                                             : Json::Array{range.least, range.most}});
  if (!limits.empty()) all.push_back({"limits", limits});
  if (!m.needs.empty()) all.push_back({"needs", json_array(m.needs)});
  if (m.max_arena_bytes) all.push_back({"max_arena_bytes", *m.max_arena_bytes});
  Json::Array paths;
  for (const auto& sizes : m.fast_paths) paths.push_back(object_of(sizes));
  if (!paths.empty()) all.push_back({"fast_paths", paths});
  if (!m.weights_file.empty()) all.push_back({"weights_file", m.weights_file});
  Json::Array wider;
  for (const Manifest& path : m.paths) wider.push_back(to_json(path));
  if (!wider.empty()) all.push_back({"paths", wider});
  if (m.verified)
    all.push_back({"verified",
                   Json::Object{{"data", m.verified->data}, {"tolerance", m.verified->tolerance}}});
  if (m.grows) all.push_back({"grows", true});
  if (!m.devices.empty())
    all.push_back({"devices", json_array(m.devices)}),
        all.push_back({"device_notes", json_array(m.device_notes)});
  return all;
}

std::string print(const Manifest& manifest) { return dump(to_json(manifest), -1); }

const Manifest& path_of(const Manifest& manifest, std::string_view target) {
  const auto found = std::ranges::find(manifest.paths, target, &Manifest::target_name);
  return found == manifest.paths.end() ? manifest : *found;
}

Expected<Manifest> parse_manifest(const std::string& text, const std::string& file) {
  TW_ASSIGN(const Json json, parse_json(text, file));
  TW_ASSIGN(Manifest m, manifest_from(json, file));
  for (const Json& path : json["paths"].items()) {
    TW_ASSIGN(Manifest one, manifest_from(path, file));
    m.paths.push_back(std::move(one));
  }
  return m;
}

SymbolNames symbol_names(const Manifest& manifest) {
  SymbolNames names;
  for (size_t i = 0; i < std::min(manifest.symbols.size(), manifest.identifiers.size()); ++i)
    names[manifest.identifiers[i]] = manifest.symbols[i];
  return names;
}

std::string to_string(const ManifestTensor& t) {
  std::string text = t.name + ": " + t.dtype + "[";
  for (size_t i = 0; i < t.dims.size(); ++i) text += (i ? ", " : "") + t.dims[i];
  return text + "]";
}

}  // namespace tw
