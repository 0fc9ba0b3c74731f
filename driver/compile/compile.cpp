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
#include "packager/artifact.h"
#include "packager/header.h"
#include "program/fast_paths.h"
#include "support/parallel.h"

namespace tw {
namespace {

constexpr std::array<std::pair<const char*, Emit>, 8> kEmits = {{{"so", Emit::so},
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
                            const std::string& name) {
  ModelInterface model;
  model.name = name;
  for (const std::string& symbol : program.symbols)
    model.symbols.push_back(symbol_name(names, symbol));
  auto tensor = [&](const TensorSpec& spec) {
    InterfaceTensor t{spec.name, spec.dtype, {}};
    for (const Expr& dim : spec.dims) {
      InterfaceDim d;
      if (auto extent = as_const(dim)) {
        d.extent = *extent;
      } else if (dim->kind == ExprKind::var && std::ranges::count(program.symbols, dim->name)) {
        d.kind = InterfaceDim::Kind::symbol;
        d.extent = std::find(program.symbols.begin(), program.symbols.end(), dim->name) -
                   program.symbols.begin();
      } else {
        d.kind = InterfaceDim::Kind::computed;
        d.text = to_string(dim, names);
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

// Sizes of free dimensions, named in any way, by the model's symbols.
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

// What people hear of the schedules.
void add_remarks(const ScheduleRemarks& remarks, CompileReport& report) {
  report.schedules_in_use |= remarks.in_use;
  report.warnings.insert(report.warnings.end(), remarks.warnings.begin(), remarks.warnings.end());
  report.faults.insert(report.faults.end(), remarks.faults.begin(), remarks.faults.end());
  report.notes.insert(report.notes.end(), remarks.notes.begin(), remarks.notes.end());
}

CompileReport report_of(const Model& model) {
  CompileReport report;
  report.model_bytes = model.file_bytes;
  report.dims = model.dims;
  report.limits = model.graph.limits;
  report.symbol_names = model.symbol_names;
  report.example = example_sizes(input_specs(model.graph), model.symbol_names, model.graph.limits);
  report.warnings = model.warnings;
  return report;
}

// What the report says of the steps up to the program.
void add_steps(LoweredModel& lowered, CompileReport& report) {
  report.nodes = lowered.nodes;
  report.groups = lowered.groups;
  report.layouts = std::move(lowered.layouts);
  report.algorithms = std::move(lowered.algorithms);
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

// What is known of the code that the devices have got.
struct DeviceCode {
  std::vector<KernelReport> reports;  // by kernel; no name: it runs on none of them
  std::vector<std::string> notes;
};
// The devices' code, which the program then has.
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
  return codegen;
}

Expected<LinkedImage> link_library(std::vector<std::string> objects, const Manifest& manifest,
                                   const std::string& output) {
  LinkRequest request;
  request.objects = std::move(objects);
  const size_t slash = output.find_last_of('/');
  request.soname = slash == std::string::npos ? output : output.substr(slash + 1);
  request.exports = {"tw_" + manifest.name + "_query"};
  request.manifest = print(manifest);
  return link_shared(request);
}

// The library, with the weights packed straight into its file, and the header.
Error write_files(const LinkedImage& image, const Program& program, const ModelInterface& interface,
                  const CompileOptions& options) {
  TW_ASSIGN(ArtifactWriter writer,
            ArtifactWriter::create(options.output, image, program.weight_bytes));
  TW_TRY(pack_weights(
      program,
      [&](uint64_t offset, uint64_t size, auto body) { return writer.fill(offset, size, body); },
      threads_or_all(options.jobs)));
  const std::string text = write_header(interface);
  TW_ASSIGN(OutputFile header, OutputFile::create(header_path(options), text.size()));
  TW_TRY(header.write(0, text));
  TW_TRY(writer.finish());
  return header.commit();
}

// What the report says of the memory of a program.
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
  // The devices', too
  if (planned.program.symbols.empty()) report.naive_arena_bytes = planned.program.naive_arena_bytes;
}

// The fast path for these sizes, by symbol.
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
  std::string text;
  for (const auto& [word, emit] : kEmits) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
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

Expected<CompileReport> compile_model(const CompileOptions& options, const Target& target,
                                      const OnStage& progress) {
  // The model: mapped, checked, brought to one opset, every unsupported part reported at once.
  auto start = std::chrono::steady_clock::now();
  if (progress) progress("import");
  TW_ASSIGN(Model model, import_onnx(options.model, {options.dims, options.limits}));
  CompileOptions named = options;
  std::vector<Model> special;
  for (auto& sizes : named.specialize) {
    TW_ASSIGN(auto symbols, by_symbol(sizes, model));
    TW_ASSIGN(Model bound,
              import_onnx(options.model, {with_sizes(options.dims, sizes), options.limits}));
    sizes = std::move(symbols);
    special.push_back(std::move(bound));
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  named.dims = model.dims;
  if (named.output.empty()) named.output = stem_of(options.model) + ".so";
  TW_ASSIGN(CompileReport report,
            compile_graph(std::move(model), named, target, progress, std::move(special)));
  report.stages.insert(report.stages.begin(), {"import", seconds});
  return report;
}

Expected<CompileReport> compile_graph(Model model, const CompileOptions& options,
                                      const Target& target, const OnStage& progress,
                                      std::vector<Model> special) {
  StageClock stages(progress);
  Dump dump(options.dump_dir);
  CompileReport report = report_of(model);
  const auto done = [&] {
    stages.end();
    report.stages = stages.reports();
    report.peak_memory_bytes = peak_memory();
    return std::move(report);
  };
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
  if (options.strict && !report.faults.empty()) return done();
  report.kernels = static_cast<int64_t>(program.kernels.size());
  report.calls = static_cast<int64_t>(program.calls.size());
  report.weight_bytes = program.weight_bytes;

  stages.begin("codegen");
  TW_ASSIGN(const std::unique_ptr<Backend> backend, make_backend(target));
  TW_ASSIGN(const DeviceCode device_code,
            generate_for_devices(program, devices, target, threads_or_all(options.jobs)));
  const std::vector<KernelReport>& on_devices = device_code.reports;
  report.notes.insert(report.notes.end(), device_code.notes.begin(), device_code.notes.end());
  if (options.emit == Emit::llvm || options.emit == Emit::assembly) {
    TW_ASSIGN(report.text,
              text_of_kernels(*backend, program, options.emit == Emit::llvm ? "llvm" : "asm"));
    return done();
  }
  const CodegenOptions codegen = codegen_options(model, options, target);
  TW_ASSIGN(ObjectCode code, backend->compile(program, codegen));
  report.kernel_reports = code.kernels;
  for (size_t k = 0; k < on_devices.size(); ++k)
    if (!on_devices[k].name.empty())
      report.kernel_reports[k] = on_devices[k], report.kernel_reports[k].on_device = true;
  report.output = options.output;
  report.header = header_path(options);

  stages.begin("link");
  const Manifest manifest = make_manifest(model, program, target, codegen.symbol, options, report);
  TW_ASSIGN(const LinkedImage image,
            link_library(std::move(code.objects), manifest, report.output));
  stages.begin("weights");
  TW_TRY(write_files(image, program, interface_of(program, model.symbol_names, codegen.symbol),
                     options));
  uint64_t bytes = 0;
  if (!llvm::sys::fs::file_size(report.output, bytes)) report.artifact_bytes = bytes;
  return done();
}

}  // namespace tw
