// compile_model: read it from top to bottom, one call a step.
#include "driver/compile.h"

#include <llvm/Support/FileSystem.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "driver/dump.h"
#include "driver/manifest.h"
#include "driver/tensors.h"
#include "packager/artifact.h"
#include "packager/header.h"
#include "passes/fuse_groups.h"
#include "program/fast_paths.h"
#include "program/place_groups.h"
#include "support/parallel.h"
#include "support/repro.h"

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
  model.grows = program.rooms > 0;
  return model;
}

// Times the steps and tells progress.
class Stages {
 public:
  Stages(CompileReport& report, const OnStage& progress) : report_(report), progress_(progress) {}
  void begin(const std::string& name) {
    end();
    if (progress_) progress_(name);
    report_.stages.push_back({name, 0, ""});
    start_ = std::chrono::steady_clock::now();
    open_ = true;
  }
  void end() {
    if (open_)
      report_.stages.back().seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    open_ = false;
  }

 private:
  CompileReport& report_;
  const OnStage& progress_;
  std::chrono::steady_clock::time_point start_;
  bool open_ = false;
};

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

std::map<std::string, int64_t> blocks_of(const Graph& graph) {
  std::map<std::string, int64_t> blocks;
  for (const NodeId id : graph.order()) {
    const Value& value = graph.value(graph.node(id).output);
    if (!value.type.layout.plain() && !std::holds_alternative<op::LayoutCast>(graph.node(id).attrs))
      blocks[value.name] = value.type.layout.block;
  }
  return blocks;
}

// Of the groups that could not go to a device, or should not: names and why.
std::vector<std::string> host_reasons(const Graph& graph, const std::vector<Group>& groups,
                                      const Placement& placement) {
  std::vector<std::string> reasons;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (placement.devices[g] != 0 || placement.reasons[g].empty()) continue;
    const Node& node = graph.node(groups[g].anchor);
    reasons.push_back((node.name.empty() ? graph.value(node.output).name : node.name) + " (" +
                      op_info(node.attrs).name + ") on the processor: " + placement.reasons[g]);
  }
  return reasons;
}

using DeviceBackends = std::vector<std::unique_ptr<DeviceBackend>>;

// From the imported graph to scheduled kernels and their calls. Nothing where options.emit asks for
// a text on the way, which the report has then.
Expected<std::optional<Program>> lower_graph(Graph& graph, const CompileOptions& options,
                                             const Target& target, const DeviceBackends& devices,
                                             Stages& stages, Dump& dump, CompileReport& report) {
  const int jobs = threads_or_all(options.jobs);
  TW_TRY(dump.write(DumpStage::imported, [&] { return print(graph); }));

  // Rewriting: everything that makes the graph smaller or its patterns plainer, layouts last.
  stages.begin("passes");
  PassContext context{target.main_device(), 64 << 20, ""};
  TW_ASSIGN(ScheduleChooser chooser, ScheduleChooser::make(options.schedules, options.model,
                                                           options.dims, graph.limits, target));
  std::unique_ptr<CostOracle> costs;
  // What is known of layouts: values keep their numbers up to there
  if (chooser.in_use() && !options.plain && target.devices.empty() && options.pipeline.empty()) {
    Graph before = graph;
    std::vector<std::string> pipeline = default_pipeline();
    TW_CHECK(pipeline.back() == "assign-layouts", "layouts are assigned last");
    pipeline.pop_back();
    PassContext own{target.main_device()};
    TW_TRY(run_passes(before, own, pipeline));
    TW_ASSIGN(costs, chooser.layout_costs(before, target, options.algorithms));
    context.costs = costs.get();
  }
  TW_TRY(run_passes(graph, context,
                    options.pipeline.empty() ? default_pipeline() : options.pipeline,
                    options.passes));
  if (costs) report.layouts = blocks_of(graph);
  if (options.edit_graph) options.edit_graph(graph);
  report.nodes = static_cast<int64_t>(graph.order().size());
  TW_TRY(dump.write(DumpStage::optimized, [&] { return print(graph); }));
  if (options.emit == Emit::graph) {
    report.text = print(graph);
    return std::nullopt;
  }

  // Fusion: which operators share a kernel; then the algorithm of each product, and the pools that
  // suit it.
  std::vector<Group> groups = options.plain ? single_groups(graph)
                                            : fuse_groups(graph, target.devices.empty());
  if (!options.plain && target.devices.empty()) {  // devices have the direct algorithms
    TW_ASSIGN(const AlgorithmOptions algorithms,
              chooser.algorithms(graph, groups, target, options.algorithms));
    choose_algorithms(graph, groups, target, algorithms);
    for (const Group& group : groups)
      if (has_algorithms(graph, group))
        report.algorithms.emplace(graph.value(graph.node(group.anchor).output).name,
                                  group.algorithm);
    fuse_pools(graph, groups);
  }
  report.groups = static_cast<int64_t>(groups.size());
  TW_TRY(dump.write(DumpStage::groups, [&] { return print_groups(graph, groups); }));
  if (options.emit == Emit::groups) {
    report.text = print_groups(graph, groups);
    return std::nullopt;
  }

  // Kernels: loop nests, schedules, memory plan, weight list.
  stages.begin("lower");
  ProgramOptions program_options;
  Schedule schedule_in_use;
  if (!options.plain) TW_TRY(chooser.see(graph, groups));
  program_options.schedule = [&](const LoweredGroup& lowered,
                                 const Target& place) -> Expected<Kernel> {
    CheckContext context("schedule " + lowered.kernel.name, [&] { return print(lowered.kernel); });
    TW_ASSIGN(ChosenSchedule chosen, chooser.take(lowered, place, options.plain));
    schedule_in_use = std::move(chosen.schedule);
    report.schedules.push_back(std::move(chosen.pin));
    return std::move(chosen.kernel);
  };

  // Which groups a device of the target takes.
  Placement placement = place_groups(
      graph, groups, target, [&](const std::vector<LoweredGroup>& kernels, int device) {
        const Target& place = target.devices[static_cast<size_t>(device) - 1];
        std::vector<std::string> problems(kernels.size());
        const auto runs = [&](const LoweredGroup& lowered) -> Error {
          if (std::ranges::any_of(lowered.kernel.symbols,
                                  [](const std::string& symbol) { return least_of(symbol) == 0; }))
            return make_error(DiagCode::unsupported, "its sizes are made from data");
          if (chooser.placed_elsewhere(lowered, place))
            return make_error(DiagCode::unsupported, "the lock has it elsewhere");
          CheckContext context("schedule " + lowered.kernel.name,
                               [&] { return print(lowered.kernel); });
          TW_ASSIGN(const ChosenSchedule chosen,
                    std::as_const(chooser).choose(lowered, place, options.plain));
          const DeviceBackend& backend = *devices[static_cast<size_t>(device) - 1];
          TW_TRY(backend.supports(chosen.kernel));
          return backend.accepts(chosen.kernel, constants_of(lowered));
        };
        llvm::cantFail(parallel_for(jobs, kernels.size(), [&](size_t k) -> Error {
          if (Error error = runs(kernels[k])) problems[k] = error_text(std::move(error));
          return Error::success();
        }));
        return problems;
      });
  program_options.devices = placement.devices;
  program_options.region_groups = [&](const Graph& region) {
    std::vector<Group> own = options.plain ? single_groups(region)
                                           : fuse_groups(region, target.devices.empty());
    if (!options.plain) {
      choose_algorithms(region, own, target, options.algorithms);
      fuse_pools(region, own);
    }
    return own;
  };
  report.host_reasons = host_reasons(graph, groups, placement);
  program_options.on_kernel = [&](const Kernel& lowered, const Kernel& scheduled) {
    if (options.emit == Emit::kernels) report.text += print(lowered) + "\n";
    if (options.emit == Emit::schedules) {  // what 'opt' makes the scheduled kernel of
      Kernel named = lowered;
      named.name = scheduled.name;
      report.text += print(named) + print(schedule_in_use) + "\n";
    }
    if (options.emit == Emit::scheduled) report.text += print(scheduled) + "\n";
  };
  // Of the model's own graph the last
  program_options.on_plan = [&](MemoryPlan plan, std::vector<Lifetime> buffers) {
    report.naive_arena_bytes = 0;
    Sizes sizes = report.example;
    for (Expr& offset : plan.offsets) offset = value_at(offset, sizes);
    for (Lifetime& buffer : buffers) {
      buffer.bytes = value_at(buffer.bytes, sizes);
      report.naive_arena_bytes += static_cast<uint64_t>(*as_const(buffer.bytes));
    }
    report.warm_share = warm_share(plan, buffers, target.l2_bytes);
  };
  TW_ASSIGN(Program program, build_program(graph, groups, target, program_options));
  TW_TRY(chooser.complete());
  report.schedules_in_use = chooser.in_use();
  report.warnings.insert(report.warnings.end(), chooser.warnings().begin(),
                         chooser.warnings().end());
  report.faults = chooser.faults();
  report.notes = chooser.notes();
  TW_TRY(dump.write(DumpStage::program, [&] { return print(program); }));
  if (options.emit == Emit::kernels || options.emit == Emit::schedules ||
      options.emit == Emit::scheduled)
    return std::nullopt;
  return program;
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

// The fast path for these sizes, by symbol.
Error add_sizes(Program& program, Model& model, const CompileOptions& options,
                const std::map<std::string, int64_t>& sizes, const Target& target,
                const DeviceBackends& devices, Stages& stages, CompileReport& report) {
  CompileOptions own = options;
  own.dims = model.dims;
  CompileReport special;
  Dump nowhere("");
  TW_ASSIGN(const std::optional<Program> lowered,
            lower_graph(model.graph, own, target, devices, stages, nowhere, special));
  const size_t known = program.kernels.size();
  TW_ASSIGN(const std::vector<int> numbers, add_fast_path(program, lowered.value(), sizes));
  for (size_t k = 0; k < numbers.size() && k < special.schedules.size(); ++k)
    if (static_cast<size_t>(numbers[k]) >= known)
      report.schedules.push_back(std::move(special.schedules[k]));
  report.warnings.insert(report.warnings.end(), special.warnings.begin(), special.warnings.end());
  report.faults.insert(report.faults.end(), special.faults.begin(), special.faults.end());
  report.notes.insert(report.notes.end(), special.notes.begin(), special.notes.end());
  return Error::success();
}

}  // namespace

std::map<std::string, int64_t> with_sizes(std::map<std::string, int64_t> dims,
                                          const std::map<std::string, int64_t>& sizes) {
  for (const auto& [name, size] : sizes) dims[name] = size;
  return dims;
}

LockSection lock_section(const CompileOptions& options, const Target& target,
                         const CompileReport& report) {
  LockSection section = lock_place(options.model, report.dims, report.limits, target,
                                   options.schedules.threads);
  std::ranges::copy_if(report.schedules, std::back_inserter(section.pins),
                       [](const Pin& pin) { return !pin.task.empty(); });
  section.layouts = report.layouts;
  section.algorithms = report.algorithms;
  return section;
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
  report.stages.insert(report.stages.begin(), {"import", seconds, ""});
  return report;
}

Expected<CompileReport> compile_graph(Model model, const CompileOptions& options,
                                      const Target& target, const OnStage& progress,
                                      std::vector<Model> special) {
  CompileReport report;
  int jobs = threads_or_all(options.jobs);
  Stages stages(report, progress);
  Dump dump(options.dump_dir);
  auto done = [&] {
    stages.end();
    report.peak_memory_bytes = peak_memory();
    return std::move(report);
  };
  report.model_bytes = model.file_bytes;
  report.dims = model.dims;
  report.limits = model.graph.limits;
  report.symbol_names = model.symbol_names;
  std::vector<TensorSpec> inputs = input_specs(model.graph);
  report.example = example_sizes(inputs, model.symbol_names, model.graph.limits);
  report.warnings = model.warnings;
  DeviceBackends devices;
  for (const Target& device : target.devices) {
    TW_ASSIGN(std::unique_ptr<DeviceBackend> made, make_device_backend(device));
    if (const std::string note = made->note(); !note.empty())
      report.device_notes.push_back(device.name + ": " + note);
    devices.push_back(std::move(made));
  }
  TW_ASSIGN(std::optional<Program> lowered,
            lower_graph(model.graph, options, target, devices, stages, dump, report));
  if (!lowered) return done();
  Program& program = *lowered;
  report.arena_bytes = program.arena_bytes;
  // The devices', too
  if (program.symbols.empty()) report.naive_arena_bytes = program.naive_arena_bytes;
  for (size_t i = 0; i < special.size(); ++i)
    TW_TRY(add_sizes(program, special[i], options, options.specialize[i], target, devices, stages,
                     report));
  if (options.strict && !report.faults.empty()) return done();
  report.kernels = static_cast<int64_t>(program.kernels.size());
  report.calls = static_cast<int64_t>(program.calls.size());
  report.weight_bytes = program.weight_bytes;

  // Machine code, a kernel an object.
  stages.begin("codegen");
  TW_ASSIGN(std::unique_ptr<Backend> backend, make_backend(target));
  std::vector<KernelReport> device_reports(program.kernels.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    TW_ASSIGN(const std::vector<KernelReport> reports,
              devices[d]->compile(program, static_cast<int>(d) + 1, jobs));
    for (size_t k = 0; k < reports.size(); ++k) {
      if (!reports[k].name.empty()) device_reports[k] = reports[k];
      if (reports[k].one_thread)
        report.notes.push_back(target.devices[d].name + ": a nest of kernel '" + reports[k].name +
                               "' runs in one thread: no rule of the schedules fits it");
    }
  }
  if (options.emit == Emit::llvm || options.emit == Emit::assembly) {
    TW_ASSIGN(report.text,
              text_of_kernels(*backend, program, options.emit == Emit::llvm ? "llvm" : "asm"));
    return done();
  }
  CodegenOptions codegen;
  codegen.jobs = jobs;
  codegen.symbol = !options.name.empty()    ? options.name
                   : options.output.empty() ? model.name
                                            : identifier(stem_of(options.output));
  codegen.symbol_names = model.symbol_names;
  codegen.target_name = target.name;
  for (const Target& device : target.devices)
    codegen.devices.emplace_back(device.name, device.driver);
  codegen.share_ns = options.share_ns;
  TW_ASSIGN(ObjectCode code, backend->compile(program, codegen));
  report.kernel_reports = code.kernels;
  for (size_t k = 0; k < device_reports.size(); ++k)
    if (!device_reports[k].name.empty())
      report.kernel_reports[k] = device_reports[k], report.kernel_reports[k].on_device = true;
  report.output = options.output;
  report.header = header_path(options);

  // The library, the weights packed straight into its file, the header.
  stages.begin("link");
  LinkRequest request;
  request.objects = std::move(code.objects);
  size_t slash = report.output.find_last_of('/');
  request.soname = slash == std::string::npos ? report.output : report.output.substr(slash + 1);
  request.exports = {"tw_" + codegen.symbol + "_query"};
  request.manifest = print(make_manifest(model, program, target, codegen.symbol, options, report));
  TW_ASSIGN(LinkedImage image, link_shared(request));
  stages.begin("weights");
  TW_ASSIGN(ArtifactWriter writer,
            ArtifactWriter::create(report.output, image, program.weight_bytes));
  TW_TRY(pack_weights(
      program,
      [&](uint64_t offset, uint64_t size, auto body) { return writer.fill(offset, size, body); },
      jobs));
  std::string header_text = write_header(interface_of(program, model.symbol_names, codegen.symbol));
  TW_ASSIGN(OutputFile header, OutputFile::create(report.header, header_text.size()));
  TW_TRY(header.write(0, header_text));
  TW_TRY(writer.finish());
  TW_TRY(header.commit());
  uint64_t bytes = 0;
  if (!llvm::sys::fs::file_size(report.output, bytes)) report.artifact_bytes = bytes;
  return done();
}

}  // namespace tw
