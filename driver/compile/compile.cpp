// compile_model: read it from top to bottom, one call a step.
#include "driver/compile/compile.h"

#include <llvm/Support/FileSystem.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "driver/compile/dump.h"
#include "driver/compile/lower_model.h"
#include "driver/compile/manifest.h"
#include "driver/compile/pack_weights.h"
#include "ir/dim_names.h"
#include "ir/freestanding.h"
#include "ir/graph/queries.h"
#include "packager/artifact.h"
#include "packager/header.h"
#include "packager/llvm_object.h"
#include "packager/weights_file.h"
#include "program/fast_paths.h"
#include "program/fixed_sizes.h"
#include "program/share_weights.h"
#include "support/names_text.h"
#include "support/parallel.h"

namespace tw {
namespace {

constexpr std::array<std::pair<const char*, Emit>, 9> kEmits = {{{"so", Emit::so},
                                                                 {"obj", Emit::object},
                                                                 {"graph", Emit::graph},
                                                                 {"groups", Emit::groups},
                                                                 {"kernels", Emit::kernels},
                                                                 {"schedules", Emit::schedules},
                                                                 {"scheduled", Emit::scheduled},
                                                                 {"llvm", Emit::llvm},
                                                                 {"asm", Emit::assembly}}};

std::string stem_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  size_t dot = file.find_last_of('.');
  return dot == std::string::npos || dot == 0 ? file : file.substr(0, dot);
}

ModelInterface interface_of(const Program& program, const SymbolNames& names,
                            const CompileOptions& options, const std::string& name,
                            const Target& target) {
  ModelInterface model;
  model.name = name;
  model.prefix = options.prefix;
  model.freestanding = is_freestanding(target.triple);
  for (const std::string& symbol : program.symbols)
    model.symbols.push_back(symbol_name(names, symbol));
  model.variables = program.symbols;
  model.arena = program.arena_bytes;
  model.arena_text = to_string(program.arena_bytes, names);
  auto tensor = [&](const TensorSpec& spec) {
    InterfaceTensor t{spec.name, spec.dtype, {}};
    for (const Expr& dim : spec.dims) {
      InterfaceDim d;
      if (auto extent = as_const(dim)) {
        d.extent = *extent;
      } else if (const std::string* name = var_name(dim);
                 name && std::ranges::count(program.symbols, *name)) {
        d.kind = InterfaceDim::Kind::symbol;
        d.extent = std::find(program.symbols.begin(), program.symbols.end(), *name) -
                   program.symbols.begin();
      } else {
        d.kind = InterfaceDim::Kind::computed;
        d.text = to_string(dim, names);
        d.value = dim;
      }
      t.dims.push_back(std::move(d));
    }
    return t;
  };
  for (const TensorSpec& spec : program.inputs) model.inputs.push_back(tensor(spec));
  for (const TensorSpec& spec : program.outputs) model.outputs.push_back(tensor(spec));
  if (auto bytes = as_const(program.arena_bytes)) model.arena_bytes = static_cast<uint64_t>(*bytes);
  if (auto bytes = program.max_arena_bytes.defined() ? as_const(program.max_arena_bytes)
                                                     : std::nullopt)
    model.max_arena_bytes = static_cast<uint64_t>(*bytes);
  model.grows = program.growable_buffers > 0;
  model.needs = program.needs;
  return model;
}

Expected<std::string> text_of_kernels(const Backend& backend, const Program& program,
                                      const char* stage) {
  std::string text;
  const std::vector<bool> here = kernels_of(program, 0);
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    if (!here[k]) continue;
    TW_ASSIGN(std::string one, backend.disassemble(program.kernels[k], stage));
    text += "; ---- " + program.kernels[k].name + "\n" + one + "\n";
  }
  for (const DeviceProgram& device : program.devices) text += device.code;
  return text;
}

// Translates sizes of free dimensions, under any of their names, to the model's symbols.
Expected<std::map<std::string, int64_t>> by_symbol(const std::map<std::string, int64_t>& sizes,
                                                   const Model& model) {
  const std::vector<TensorSpec> inputs = with_names(input_specs(model.graph), model.symbol_names);
  std::map<std::string, int64_t> out;
  for (const auto& [text, size] : sizes) {
    TW_ASSIGN(const std::string name, find_dim(text, inputs));
    for (const std::string& symbol : model.graph.symbols)
      if (symbol_name(model.symbol_names, symbol) == name && !out.emplace(symbol, size).second)
        return make_error(DiagCode::invalid_argument,
                          "--specialize gives '{0}' twice, once as '{1}'", name, text);
  }
  return out;
}

void add_remarks(const ScheduleRemarks& remarks, CompileReport& report) {
  report.schedules_in_use |= remarks.in_use;
  report.warnings.insert(report.warnings.end(), remarks.warnings.begin(), remarks.warnings.end());
  report.faults.insert(report.faults.end(), remarks.faults.begin(), remarks.faults.end());
  report.notes.insert(report.notes.end(), remarks.notes.begin(), remarks.notes.end());
}

CompileReport report_of(const Model& model) {
  CompileReport report;
  report.model_bytes = model.file_bytes;
  for (int32_t i = 0; i < static_cast<int32_t>(model.graph.value_count()); ++i)
    if (model.graph.is_constant(ValueId{i}))
      report.constant_bytes += static_cast<uint64_t>(constant_bytes(model.graph, ValueId{i}));
  report.dims = model.dims;
  report.limits = model.graph.limits;
  report.symbol_names = model.symbol_names;
  report.example = example_sizes(input_specs(model.graph), model.symbol_names, model.graph.limits);
  report.warnings = model.warnings;
  std::ranges::move(fixed_sizes(model.graph, model.symbol_names),
                    std::back_inserter(report.warnings));
  return report;
}

// Fills in the report's part about the steps up to the program.
void add_steps(LoweredModel& lowered, CompileReport& report) {
  report.nodes = lowered.nodes;
  report.groups = lowered.groups;
  report.layouts = std::move(lowered.layouts);
  report.algorithms = std::move(lowered.algorithms);
  report.lossy = std::move(lowered.lossy);
  report.exact = std::move(lowered.exact);
  report.host_reasons = std::move(lowered.host_reasons);
  report.schedules = std::move(lowered.schedules);
  add_remarks(lowered.remarks, report);
}

Expected<DeviceBackends> device_backends(const Target& target) {
  DeviceBackends devices;
  for (const Target& device : target.devices) {
    TW_ASSIGN(std::unique_ptr<DeviceBackend> made, make_device_backend(device));
    devices.push_back(std::move(made));
  }
  return devices;
}

std::vector<std::string> notes_of(const DeviceBackends& devices, const Target& target) {
  std::vector<std::string> notes;
  for (size_t d = 0; d < devices.size(); ++d)
    if (const std::string note = devices[d]->note(); !note.empty())
      notes.push_back(target.devices[d].name + ": " + note);
  return notes;
}

struct DeviceCode {
  std::vector<KernelReport> reports;  // by kernel; no name: it runs on no device
  std::vector<std::string> notes;
};
Expected<DeviceCode> generate_for_devices(Program& program, const DeviceBackends& devices,
                                          const Target& target, int jobs) {
  DeviceCode code;
  code.reports.resize(program.kernels.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    TW_ASSIGN(const std::vector<KernelReport> reports,
              devices[d]->compile(program, static_cast<int>(d) + 1, jobs));
    for (size_t k = 0; k < reports.size(); ++k) {
      if (!reports[k].name.empty()) code.reports[k] = reports[k];
      if (reports[k].one_thread)
        code.notes.push_back(target.devices[d].name + ": a nest of kernel '" + reports[k].name +
                             "' runs in one thread: no rule of the schedules fits it");
    }
  }
  return code;
}

void report_devices(const DeviceCode& code, CompileReport& report) {
  for (size_t k = 0; k < code.reports.size(); ++k)
    if (!code.reports[k].name.empty())
      report.kernel_reports[k] = code.reports[k], report.kernel_reports[k].on_device = true;
}

CodegenOptions codegen_options(const Model& model, const CompileOptions& options,
                               const Target& target) {
  CodegenOptions codegen;
  codegen.jobs = threads_or_all(options.jobs);
  codegen.symbol = !options.name.empty()    ? options.name
                   : options.output.empty() ? model.name
                                            : identifier(stem_of(options.output));
  codegen.symbol_names = model.symbol_names;
  codegen.target_name = target.name;
  for (const Target& device : target.devices)
    codegen.devices.emplace_back(device.name, device.driver);
  codegen.chunk_ns = options.chunk_ns;
  codegen.store = options.store;
  codegen.weights_file = std::filesystem::path(options.weights).filename().string();
  return codegen;
}

Expected<LinkedImage> link_library(std::vector<std::string> objects, const Manifest& manifest,
                                   const std::string& triple, const std::string& output) {
  LinkRequest request;
  request.triple = triple;
  request.objects = std::move(objects);
  const size_t slash = output.find_last_of('/');
  request.soname = slash == std::string::npos ? output : output.substr(slash + 1);
  request.exports = model_exports(manifest.name);
  request.manifest = print(manifest);
  return link_shared(request);
}

// Writes an object or a static library, and the header.
Expected<ObjectSizes> write_object_files(std::vector<std::string> objects, const Manifest& manifest,
                                         const Program& program, const ModelInterface& interface,
                                         const CompileOptions& options) {
  ObjectRequest request;
  request.objects = std::move(objects);
  request.freestanding = interface.freestanding;
  request.exports = {"tw_" + manifest.name + (request.freestanding ? "_compute" : "_query")};
  request.manifest = print(manifest);
  request.weight_bytes = program.weight_bytes;
  const auto fill = [&](std::span<std::byte> weights) {
    return pack_weights(
        program,
        [&](uint64_t offset, uint64_t size, auto body) {
          return body(weights.subspan(offset, size));
        },
        threads_or_all(options.jobs));
  };
  TW_ASSIGN(LinkedObject linked, link_object(request, fill));
  if (is_archive_name(options.output)) {
    TW_ASSIGN(linked.bytes, archive_of(manifest.name + ".o", linked.bytes));
  }
  TW_TRY(write_file(header_path(options), write_header(interface)));
  TW_TRY(write_file(options.output, linked.bytes));
  return linked.sizes;
}

void add_memory(const PlannedProgram& planned, const Target& target, CompileReport& report) {
  Sizes sizes = report.example;
  MemoryPlan plan = planned.arena;
  std::vector<Lifetime> buffers = planned.buffers;
  for (Expr& offset : plan.offsets) offset = value_at(offset, sizes);
  for (Lifetime& buffer : buffers) {
    buffer.bytes = value_at(buffer.bytes, sizes);
    report.naive_arena_bytes += static_cast<uint64_t>(*as_const(buffer.bytes));
  }
  report.warm_share = warm_share(plan, buffers, target.l2_bytes);
  report.arena_bytes = planned.program.arena_bytes;
  // The program's own number also counts the devices.
  if (planned.program.symbols.empty()) report.naive_arena_bytes = planned.program.naive_arena_bytes;
}

// One more program of the library, for a processor with more instructions, and its report
struct WiderPath {
  const Target& target;
  Program program;
  CompileReport report;
};

PathReport told_of(const Program& program, const Target& target) {
  return {target.name, static_cast<int64_t>(program.kernels.size()),
          static_cast<int64_t>(program.calls.size()), program.weight_bytes, 0};
}

void add_counts(const Program& program, CompileReport& report) {
  report.kernels = static_cast<int64_t>(program.kernels.size());
  report.calls = static_cast<int64_t>(program.calls.size());
  report.kernel_calls.resize(program.kernels.size());
  for (const KernelCall& call : program.calls)
    if (!call.function) ++report.kernel_calls[static_cast<size_t>(call.kernel)];
  report.weight_bytes = program.weight_bytes;
}

// Lowers the model for one more processor. The weights join those of `first`.
Error add_wider(std::vector<WiderPath>& wider, Graph graph, const Target& target,
                const CompileReport& of_model, const CompileOptions& options, Program& first,
                StageClock& stages, CompileReport& all) {
  Dump nowhere("");
  TW_ASSIGN(LoweredModel lowered,
            lower_model(std::move(graph), options.dims, options, target, {}, stages, nowhere));
  WiderPath& path = wider.emplace_back(WiderPath{target, {}, of_model});
  add_memory(lowered.planned, target, path.report);
  path.program = std::move(lowered.planned.program);
  all.paths.push_back(told_of(path.program, target));
  all.paths.back().shared_weight_bytes = share_weights(first, path.program);
  add_remarks(lowered.remarks, all);
  add_steps(lowered, path.report);
  return Error::success();
}

Error generate_wider(std::vector<WiderPath>& wider, const Program& first, CodegenOptions codegen,
                     ObjectCode& code) {
  for (size_t i = 0; i < wider.size(); ++i) {
    WiderPath& path = wider[i];
    path.program.weight_bytes = first.weight_bytes;
    codegen.path = static_cast<int>(i) + 1;
    codegen.target_name = path.target.name;
    TW_ASSIGN(const std::unique_ptr<Backend> backend, make_backend(path.target));
    TW_ASSIGN(ObjectCode own, backend->compile(path.program, codegen));
    std::ranges::move(own.objects, std::back_inserter(code.objects));
    path.report.kernel_reports = std::move(own.kernels);
  }
  return Error::success();
}

// Raises the memory of the interface so that it suffices for the other program, too.
void cover(ModelInterface& interface, const ModelInterface& other) {
  const auto larger = [](std::optional<uint64_t>& most, const std::optional<uint64_t>& bytes) {
    if (!bytes) most.reset();
    else if (most) most = std::max(*most, *bytes);
  };
  larger(interface.arena_bytes, other.arena_bytes);
  larger(interface.max_arena_bytes, other.max_arena_bytes);
  interface.grows |= other.grows;
  if (interface.arena_text == other.arena_text) return;
  interface.arena = {};
  interface.arena_text.clear();
}

// The target of the first program of a library.
Target first_path(Target target) {
  if (target.isa.empty()) return target;
  target.name = target.isa.front();
  target.isa.clear();
  target.wider.clear();
  return target;
}

ModelInterface interface_of_all(const Program& first, const std::vector<WiderPath>& wider,
                                const Model& model, const CompileOptions& options,
                                const std::string& name, const Target& target) {
  ModelInterface interface = interface_of(first, model.symbol_names, options, name, target);
  for (const WiderPath& path : wider)
    cover(interface, interface_of(path.program, model.symbol_names, options, name, path.target));
  return interface;
}

// Writes the library, with the weights packed straight into its file, and the header.
Error write_files(const LinkedImage& image, const Program& program, const ModelInterface& interface,
                  const CompileOptions& options) {
  const auto pack = [&](auto& file) {
    return pack_weights(
        program,
        [&](uint64_t offset, uint64_t size, auto body) { return file.fill(offset, size, body); },
        threads_or_all(options.jobs));
  };
  std::optional<WeightsFile> apart;
  std::string known;  // header of a separate weights file, for the library
  if (!options.weights.empty()) {
    TW_ASSIGN(WeightsFile file, WeightsFile::create(options.weights, program.weight_bytes));
    apart.emplace(std::move(file));
    TW_TRY(pack(*apart));
    TW_ASSIGN(known, apart->finish());
  }
  TW_ASSIGN(
      ArtifactWriter writer,
      ArtifactWriter::create(options.output, image, apart ? known.size() : program.weight_bytes));
  TW_TRY(apart ? writer.write(0, known) : pack(writer));
  const std::string text = write_header(interface);
  TW_ASSIGN(OutputFile header, OutputFile::create(header_path(options), text.size()));
  TW_TRY(header.write(0, text));
  if (apart) TW_TRY(apart->commit());
  TW_TRY(writer.finish());
  return header.commit();
}

// Refuses a kind of output that the target cannot have.
Error check_kind(const CompileOptions& options, const Target& target) {
  if (options.emit == Emit::so && is_freestanding(target.triple))
    return make_error(DiagCode::unsupported,
                      "target '{0}' has no operating system to load a library: --emit obj makes an "
                      "object for it",
                      target.name);
  if (!target.wider.empty() && !options.specialize.empty())
    return make_error(DiagCode::unsupported,
                      "--specialize: not for '{0}', a target of several processors", target.name);
  return Error::success();
}

// Adds a fast path; sizes are by symbol.
Error add_sizes(Program& program, Model& model, const CompileOptions& options,
                const std::map<std::string, int64_t>& sizes, const Target& target,
                const DeviceBackends& devices, StageClock& stages, CompileReport& report) {
  Dump nowhere("");
  TW_ASSIGN(LoweredModel special, lower_model(std::move(model.graph), model.dims, options, target,
                                              devices, stages, nowhere));
  const size_t known = program.kernels.size();
  TW_ASSIGN(const std::vector<int> numbers, add_fast_path(program, special.planned.program, sizes));
  for (size_t k = 0; k < numbers.size() && k < special.schedules.size(); ++k)
    if (static_cast<size_t>(numbers[k]) >= known)
      report.schedules.push_back(std::move(special.schedules[k]));
  add_remarks(special.remarks, report);
  return Error::success();
}

struct LibraryParts {
  const Model& model;
  const Target& target;
  const Program& program;
  const std::vector<WiderPath>& wider;
  const std::string& symbol;
};

Error write_library(ObjectCode code, const LibraryParts& of, const CompileOptions& options,
                    StageClock& stages, CompileReport& report) {
  report.output = options.output;
  report.header = header_path(options);
  stages.begin("link");
  Manifest manifest = make_manifest(of.model, of.program, of.target, of.symbol, options, report);
  for (const WiderPath& path : of.wider)
    manifest.paths.push_back(
        make_manifest(of.model, path.program, path.target, of.symbol, options, path.report));
  const ModelInterface interface = interface_of_all(of.program, of.wider, of.model, options,
                                                    of.symbol, of.target);
  if (options.emit == Emit::object) {
    TW_ASSIGN(report.object, write_object_files(std::move(code.objects), manifest, of.program,
                                                interface, options));
  } else {
    TW_ASSIGN(const LinkedImage image,
              link_library(std::move(code.objects), manifest, of.target.triple, report.output));
    stages.begin("weights");
    TW_TRY(write_files(image, of.program, interface, options));
  }
  uint64_t bytes = 0;
  if (!llvm::sys::fs::file_size(report.output, bytes)) report.artifact_bytes = bytes;
  return Error::success();
}

}  // namespace

std::map<std::string, int64_t> with_sizes(std::map<std::string, int64_t> dims,
                                          const std::map<std::string, int64_t>& sizes) {
  for (const auto& [name, size] : sizes) dims[name] = size;
  return dims;
}

std::optional<Emit> emit_from_name(std::string_view name) {
  for (auto [word, emit] : kEmits)
    if (name == word) return emit;
  return std::nullopt;
}
std::string emit_names() {
  return names_text(kEmits, [](const auto& emit) { return emit.first; });
}

std::string header_path(const CompileOptions& options) {
  return options.header.empty()
             ? std::filesystem::path(options.output).replace_extension(".h").string()
             : options.header;
}

uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Expected<Model> import_model(const CompileOptions& options) {
  TW_ASSIGN(Model model, import_onnx(options.model, {options.dims, options.limits, options.given}));
  TW_TRY(round_by(options.rounding, model.graph));
  return model;
}

Expected<CompileReport> compile_model(const CompileOptions& options, const Target& target,
                                      const OnStage& progress) {
  // Import: the model is mapped, checked and brought to one opset. All unsupported parts are
  // reported at once.
  auto start = std::chrono::steady_clock::now();
  if (progress) progress("import");
  TW_ASSIGN(Model model, import_model(options));
  CompileOptions named = options;
  std::vector<Model> special;
  for (auto& sizes : named.specialize) {
    TW_ASSIGN(auto symbols, by_symbol(sizes, model));
    CompileOptions of_sizes = options;
    of_sizes.dims = with_sizes(options.dims, sizes);
    TW_ASSIGN(Model bound, import_model(of_sizes));
    sizes = std::move(symbols);
    special.push_back(std::move(bound));
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  named.dims = model.dims;
  if (named.output.empty()) named.output = stem_of(options.model) + ".so";
  const SymbolNames names = model.symbol_names;
  Expected<CompileReport> report = compile_graph(std::move(model), named, target, progress,
                                                 std::move(special));
  if (!report) return with_names(report.takeError(), names);
  report->stages.insert(report->stages.begin(), {"import", seconds});
  return report;
}

Expected<CompileReport> compile_graph(Model model, const CompileOptions& options,
                                      const Target& whole, const OnStage& progress,
                                      std::vector<Model> special) {
  const Target target = first_path(whole);
  StageClock stages(progress);
  Dump dump(options.dump_dir);
  CompileReport report = report_of(model);
  const auto done = [&] {
    stages.end();
    report.stages = stages.reports();
    report.peak_memory_bytes = peak_memory();
    return std::move(report);
  };
  TW_TRY(check_kind(options, whole));
  const std::vector<Graph> graphs(whole.wider.size(), model.graph);
  const CompileReport of_model = report;
  TW_ASSIGN(const DeviceBackends devices, device_backends(target));
  report.device_notes = notes_of(devices, target);
  TW_ASSIGN(LoweredModel lowered, lower_model(std::move(model.graph), options.dims, options, target,
                                              devices, stages, dump));
  add_steps(lowered, report);
  if (lowered.text) {
    report.text = std::move(*lowered.text);
    return done();
  }
  add_memory(lowered.planned, target, report);
  if (options.on_planned) options.on_planned(lowered.planned);
  Program program = std::move(lowered.planned.program);
  for (size_t i = 0; i < special.size(); ++i)
    TW_TRY(add_sizes(program, special[i], options, options.specialize[i], target, devices, stages,
                     report));
  report.paths.push_back(told_of(program, target));
  std::vector<WiderPath> wider;
  for (size_t i = 0; i < whole.wider.size(); ++i)
    TW_TRY(add_wider(wider, graphs[i], whole.wider[i], of_model, options, program, stages, report));
  if (options.strict && !report.faults.empty()) return done();
  add_counts(program, report);

  stages.begin("codegen");
  TW_ASSIGN(const std::unique_ptr<Backend> backend, make_backend(target));
  TW_ASSIGN(const DeviceCode device_code,
            generate_for_devices(program, devices, target, threads_or_all(options.jobs)));
  report.notes.insert(report.notes.end(), device_code.notes.begin(), device_code.notes.end());
  if (options.emit == Emit::llvm || options.emit == Emit::assembly) {
    TW_ASSIGN(report.text,
              text_of_kernels(*backend, program, options.emit == Emit::llvm ? "llvm" : "asm"));
    return done();
  }
  CodegenOptions codegen = codegen_options(model, options, target);
  codegen.paths = static_cast<int>(wider.size()) + 1;
  TW_ASSIGN(ObjectCode code, backend->compile(program, codegen));
  report.kernel_reports = code.kernels;
  TW_TRY(generate_wider(wider, program, codegen, code));
  report_devices(device_code, report);
  TW_TRY(write_library(std::move(code), {model, whole, program, wider, codegen.symbol}, options,
                       stages, report));
  return done();
}

}  // namespace tw
