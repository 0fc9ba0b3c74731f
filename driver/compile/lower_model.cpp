#include "driver/compile/lower_model.h"

#include <algorithm>
#include <map>

#include "ir/freestanding.h"
#include "kernels/device/few_threads.h"
#include "passes/choose/product_names.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "passes/quantization/quantization.h"
#include "program/place_groups.h"
#include "support/parallel.h"
#include "support/repro.h"

namespace tw {
namespace {

// Layout blocks by value, in the graph and in the graphs that its nodes run
std::map<std::string, int64_t> blocks_of(const Graph& whole) {
  std::vector<const Graph*> graphs = regions_within(whole);
  graphs.insert(graphs.begin(), &whole);
  std::map<std::string, int64_t> blocks;
  for (const Graph* graph : graphs)
    for (const NodeId id : graph->order()) {
      const Node& node = graph->node(id);
      const Value& value = graph->value(node.output);
      if (!value.type.layout.plain() && !std::holds_alternative<op::LayoutCast>(node.attrs))
        blocks.emplace(value.name, value.type.layout.block);
    }
  return blocks;
}

Expected<std::unique_ptr<ModelSchedules>> schedules_of(const std::map<std::string, int64_t>& dims,
                                                       const SymbolLimitsOf& limits,
                                                       const CompileOptions& options,
                                                       const Target& target) {
  if (options.plain) return std::make_unique<PlainSchedules>();
  if (!options.schedules) return std::make_unique<ModelSchedules>();
  return options.schedules->open(options.model, dims, limits, target);
}

FusedGraph fuse(const Graph& graph, bool plain, const Target& device) {
  return {&graph, plain ? single_groups(graph) : fuse_groups(graph, &device)};
}

// Chooses the algorithm of each product, and fuses pools that suit it. With devices, the choice is
// made as if the first device took all groups, until the groups are placed.
void settle_algorithms(FusedGraph& fused, const Target& target, const AlgorithmOptions& options) {
  choose_algorithms(*fused.graph, fused.groups, target.main_device(), options);
  if (target.devices.empty()) fuse_pools(*fused.graph, fused.groups);
}

// Fuses the model's graph, then the graphs that its nodes run, and so on within these.
Expected<std::vector<FusedGraph>> fuse_model(const Graph& graph, const CompileOptions& options,
                                             const Target& target,
                                             const ModelSchedules& schedules) {
  const Target& device = target.main_device();
  std::vector<const Graph*> graphs = regions_within(graph);
  graphs.insert(graphs.begin(), &graph);
  std::vector<FusedGraph> fused;
  for (const Graph* one : graphs) {
    fused.push_back(fuse(*one, options.plain, device));
    if (options.plain) continue;
    TW_ASSIGN(const AlgorithmOptions algorithms,
              schedules.algorithms(*one, fused.back().groups, device, options.algorithms));
    settle_algorithms(fused.back(), target, algorithms);
  }
  return fused;
}

// Algorithms by the value that the product makes; by value and shape if several graphs have a
// product of that name
std::map<std::string, Algorithm> algorithms_of(const std::vector<FusedGraph>& fused) {
  std::map<std::string, int> makers;
  const auto each = [&](const auto& visit) {
    for (const FusedGraph& one : fused)
      for (const Group& group : one.groups)
        if (has_algorithms(*one.graph, group)) visit(*one.graph, group);
  };
  each([&](const Graph& graph, const Group& group) { ++makers[product_name(graph, group)]; });
  std::map<std::string, Algorithm> algorithms;
  each([&](const Graph& graph, const Group& group) {
    const std::string name = product_name(graph, group);
    algorithms.emplace(makers.at(name) == 1 ? name : sized_product_name(graph, group),
                       group.algorithm);
  });
  return algorithms;
}

// device: 1 + index into Target::devices; 0: the processor.
const Target& place_of(const Target& target, int device) {
  return device == 0 ? target : target.devices[static_cast<size_t>(device) - 1];
}

LossyLayer lossy_layer(const Graph& graph, const Group& group, NodeId id) {
  const Node& node = graph.node(id);
  return {
      graph.value(node.output).name, group_name(graph, group), op_info(node.attrs).name, "", 0, 0};
}

// The layer of a product whose algorithm has fewer multiplications
LossyLayer fast_layer(const Graph& graph, const Group& group, const Target& target) {
  LossyLayer layer = lossy_layer(graph, group, group.anchor);
  const auto packed = [&](Algorithm algorithm) {
    const auto estimate = estimate_algorithm(graph, group, algorithm, target, 0);
    return estimate ? estimate->weight_bytes : 0;
  };
  layer.choice = algorithm_name(group.algorithm);
  layer.weight_bytes = packed(group.algorithm), layer.exact_bytes = packed(Algorithm::direct);
  return layer;
}

std::vector<LossyLayer> lossy_layers(const std::vector<FusedGraph>& fused,
                                     const std::vector<Placement>& placements,
                                     const std::map<std::string, NarrowedLayer>& narrowed,
                                     const Target& target) {
  std::vector<LossyLayer> layers;
  for (size_t f = 0; f < fused.size(); ++f)
    for (size_t g = 0; g < fused[f].groups.size(); ++g) {
      const Graph& graph = *fused[f].graph;
      const Group& group = fused[f].groups[g];
      std::optional<LossyLayer> fast;
      if (group.algorithm != Algorithm::direct)
        fast = fast_layer(graph, group, place_of(target, placements[f].devices[g]));
      for (const NodeId id : group.nodes) {
        const auto found = narrowed.find(graph.value(graph.node(id).output).name);
        if (found == narrowed.end()) continue;
        LossyLayer layer = lossy_layer(graph, group, id);
        layer.choice = found->second.numbers;
        layer.weight_bytes = static_cast<double>(found->second.weight_bytes);
        layer.exact_bytes = static_cast<double>(found->second.exact_bytes);
        if (fast && id == group.anchor) {  // the layer has both choices
          layer.choice += " " + fast->choice;
          layer.weight_bytes = fast->weight_bytes;
          fast.reset();
        }
        layers.push_back(std::move(layer));
      }
      if (fast) layers.push_back(std::move(*fast));
    }
  return layers;
}

Expected<ChosenSchedule> schedule(const LoweredKernel& kernel, const Target& target,
                                  const ModelSchedules& schedules) {
  const Kernel& lowered = kernel.lowered.kernel;
  CheckContext context("schedule " + lowered.name, [&] { return print(lowered); });
  return schedules.choose(kernel, place_of(target, kernel.device));
}

// The symbols that count iterations of loops. True: the largest number of iterations is known
// before a run. Then the largest sizes are known too, for which a device's arena is made.
using Turns = std::map<std::string, bool>;
Turns turns_of(const std::vector<FusedGraph>& fused) {
  Turns turns;
  for (const FusedGraph& one : fused)
    for (const NodeId id : one.graph->order()) {
      const auto* loop = std::get_if<op::Loop>(&one.graph->node(id).attrs);
      if (loop) turns[loop->iteration] = !loop->trip.empty() && !is_data_dependent(loop->trip[0]);
    }
  return turns;
}

Error runs_on(const DeviceBackend& backend, const LoweredKernel& kernel, const Target& target,
              const ModelSchedules& schedules, const Turns& turns) {
  for (const std::string& symbol : kernel.lowered.kernel.symbols) {
    const auto turn = turns.find(symbol);
    if (least_of(symbol) > 0 || (turn != turns.end() && turn->second)) continue;
    return make_error(DiagCode::unsupported,
                      turn == turns.end()
                          ? "its sizes are made from data"
                          : "its sizes grow with the iteration, and data say how many there are");
  }
  if (schedules.placed_elsewhere(kernel, place_of(target, kernel.device)))
    return make_error(DiagCode::unsupported, "the lock has it elsewhere");
  TW_ASSIGN(const ChosenSchedule chosen, schedule(kernel, target, schedules));
  TW_TRY(backend.supports(chosen.run.kernel));
  return backend.accepts(chosen.run.kernel, constants_of(chosen.run, constants_of(kernel.lowered)));
}

std::string title_of(const Graph& graph, const Node& node) {
  return (node.name.empty() ? graph.value(node.output).name : node.name) + " (" +
         op_info(node.attrs).name + ")";
}

// Lowers a graph's groups for a device, and notes why the device refuses some of the kernels. A
// schedule of ours that does not apply is a fault.
DeviceKernels offered(const FusedGraph& fused, const Target& target, int device,
                      const DeviceBackend& backend, const ModelSchedules& schedules,
                      const Turns& turns, int jobs, std::vector<std::string>& faults) {
  DeviceKernels own = lower_for_device(fused, target, device);
  own.refusals.resize(own.kernels.size());
  std::vector<std::string> illegal(own.kernels.size());
  llvm::cantFail(parallel_for(jobs, own.kernels.size(), [&](size_t k) -> Error {
    Error error = runs_on(backend, own.kernels[k], target, schedules, turns);
    if (!error) return Error::success();
    std::vector<Diag> diags = take_diags(std::move(error));
    if (diags.front().code == DiagCode::illegal_schedule) illegal[k] = diags.front().message;
    own.refusals[k] = error_text(make_error(std::move(diags)));
    return Error::success();
  }));
  for (size_t k = 0; k < illegal.size(); ++k)
    if (!illegal[k].empty())
      faults.push_back("kernel " + own.kernels[k].lowered.kernel.name + " on " +
                       target.devices[static_cast<size_t>(device) - 1].name +
                       " has no default schedule: " + illegal[k]);
  return own;
}

// Gives the direct algorithm to each group whose kernel the device refuses, since it may take the
// direct one. Notes this, and returns true if there was such a group.
bool take_back(FusedGraph& fused, const DeviceKernels& own, const Target& device,
               std::vector<std::string>& notes) {
  bool any = false;
  for (size_t g = 0; g < fused.groups.size(); ++g) {
    Group& group = fused.groups[g];
    const std::string& refusal = own.kernel_of[g] ? own.refusals[*own.kernel_of[g]]
                                                  : own.problems[g];
    if (refusal.empty() || algorithm_on(*fused.graph, group, device) == Algorithm::direct) continue;
    notes.push_back(title_of(*fused.graph, fused.graph->node(group.anchor)) + " on " + device.name +
                    ": direct, not " + algorithm_name(group.algorithm) + ": " + refusal);
    group.algorithm = Algorithm::direct;
    any = true;
  }
  return any;
}

// Decides for each graph's groups on which device they run, if any.
Expected<std::vector<Placement>> place(std::vector<FusedGraph>& fused, const Target& target,
                                       const DeviceBackends& devices, ModelSchedules& schedules,
                                       int jobs, ScheduleRemarks& remarks) {
  const Turns turns = turns_of(fused);
  const auto offers = [&](size_t g) {
    std::vector<DeviceKernels> all;
    for (size_t d = 0; d < devices.size(); ++d)
      all.push_back(offered(fused[g], target, static_cast<int>(d) + 1, *devices[d], schedules,
                            turns, jobs, remarks.faults));
    return all;
  };
  std::vector<std::vector<DeviceKernels>> on_device;
  for (size_t g = 0; g < fused.size(); ++g) {
    on_device.push_back(offers(g));
    bool changed = false;
    for (size_t d = 0; d < devices.size(); ++d)
      changed |= take_back(fused[g], on_device[g][d], target.devices[d], remarks.notes);
    if (!changed) continue;
    TW_TRY(schedules.read(fused));
    on_device[g] = offers(g);
  }
  return place_groups(fused, target, on_device);
}

// Gives each group of one graph the algorithm of its place. A device that lacks the algorithm
// chosen for the first device computes directly. Algorithms on the processor are chosen within the
// rest of the budgets.
Error settle_host_part(FusedGraph& fused, Placement& placement, const Target& target,
                       const CompileOptions& options, const ModelSchedules& schedules) {
  const Graph& graph = *fused.graph;
  std::map<NodeId, std::pair<int, std::string>> places;  // by anchor
  std::vector<Group> host;
  AlgorithmSummary taken;
  for (size_t g = 0; g < fused.groups.size(); ++g) {
    Group& group = fused.groups[g];
    const int device = placement.devices[g];
    places[group.anchor] = {device, placement.reasons[g]};
    if (device == 0) {
      host.push_back(group);
      continue;
    }
    group.algorithm = algorithm_on(graph, group, place_of(target, device));
    taken = taken + summary_of(graph, {group}, place_of(target, device));
  }
  TW_ASSIGN(const AlgorithmOptions algorithms,
            schedules.algorithms(graph, host, target, options.algorithms));
  choose_algorithms(graph, host, target, algorithms, taken);
  auto settled = host.begin();
  for (Group& group : fused.groups)
    if (places[group.anchor].first == 0) group = *settled++;
  fuse_pools(graph, fused.groups,
             [&](const Group& group) { return places[group.anchor].first != 0; });
  placement.devices.clear();
  placement.reasons.clear();
  for (const Group& group : fused.groups) {
    placement.devices.push_back(places[group.anchor].first);
    placement.reasons.push_back(std::move(places[group.anchor].second));
  }
  return Error::success();
}

// For each graph that a node runs, where that node is: " in body (Loop)"
std::map<const Graph*, std::string> surroundings(const std::vector<FusedGraph>& fused) {
  std::map<const Graph*, std::string> in;
  for (const FusedGraph& one : fused)
    for (const NodeId id : one.graph->order())
      for (const Graph* region : regions_of(one.graph->node(id).attrs))
        in.emplace(region, " in " + title_of(*one.graph, one.graph->node(id)) + in[one.graph]);
  return in;
}

std::vector<std::string> host_reasons(const std::vector<FusedGraph>& fused,
                                      const std::vector<Placement>& placements) {
  std::vector<std::string> reasons;
  std::map<const Graph*, std::string> in = surroundings(fused);
  for (size_t f = 0; f < fused.size(); ++f) {
    const Graph& graph = *fused[f].graph;
    const Placement& placement = placements[f];
    for (size_t g = 0; g < fused[f].groups.size(); ++g)
      if (placement.devices[g] == 0 && !placement.reasons[g].empty())
        reasons.push_back(title_of(graph, graph.node(fused[f].groups[g].anchor)) + in[&graph] +
                          " on the processor: " + placement.reasons[g]);
  }
  return reasons;
}

Expected<std::vector<ChosenSchedule>> schedule_all(const std::vector<LoweredKernel>& kernels,
                                                   const Target& target,
                                                   const ModelSchedules& schedules, int jobs) {
  std::vector<ChosenSchedule> chosen(kernels.size());
  TW_TRY(parallel_for(jobs, kernels.size(), [&](size_t k) -> Error {
    TW_ASSIGN(chosen[k], schedule(kernels[k], target, schedules));
    chosen[k].run.kernel.name = kernels[k].name;
    return Error::success();
  }));
  return chosen;
}

// A note for each stage whose few threads leave its device without work
std::vector<std::string> idle_notes(const std::vector<LoweredKernel>& kernels,
                                    const std::vector<ChosenSchedule>& chosen,
                                    const Target& target) {
  std::vector<std::string> notes;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const LoweredKernel& kernel = kernels[k];
    if (kernel.device == 0) continue;
    const Target& device = place_of(target, kernel.device);
    if (device.axes.empty()) continue;  // it has no threads to count
    std::string of = "kernel " + kernel.name;
    if (kernel.group) {
      const Node& node = kernel.graph->node(kernel.group->anchor);
      of += " (" + (node.name.empty() ? kernel.graph->value(node.output).name : node.name) + ", " +
            op_info(node.attrs).name + ")";
    }
    for (const FewThreads& stage : few_threads(chosen[k].run.kernel, device))
      notes.push_back(of + " on " + device.name + ": " + to_string(stage));
  }
  return notes;
}

// The text of the kernels that --emit asks for; nullopt: it asks for another one
std::optional<std::string> text_of(Emit emit, const std::vector<LoweredKernel>& kernels,
                                   const std::vector<ChosenSchedule>& chosen) {
  if (emit != Emit::kernels && emit != Emit::schedules && emit != Emit::scheduled)
    return std::nullopt;
  std::string text;
  for (size_t k = 0; k < kernels.size(); ++k) {
    Kernel lowered = kernels[k].lowered.kernel;
    if (emit == Emit::kernels) text += print(lowered);
    if (emit == Emit::scheduled) text += print(chosen[k].run.kernel);
    if (emit == Emit::schedules) {  // `opt` makes the scheduled kernel from this
      lowered.name = kernels[k].name;
      text += print(lowered) + print(chosen[k].schedule);
    }
    text += "\n";
  }
  return text;
}

// Refuses strings where no operating system gives a run memory for them.
Error check_strings(const Graph& graph, const Target& target) {
  if (!is_freestanding(target.triple)) return Error::success();
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<int32_t>(i)});
    if (value.type.dtype == DType::string)
      return make_error(DiagCode::unsupported,
                        "'{0}' is of strings, and target '{1}' has no operating system to take "
                        "their memory from",
                        value.name, target.name);
  }
  return Error::success();
}

// Verifies the graph once, after all passes. Only checking builds verify it after each pass.
void check_legal(const Graph& graph) {
  CheckContext context("passes", [&] { return print(graph); });
  if (Error error = verify(graph))
    TW_UNREACHABLE("the passes broke the graph: {0}", error_text(std::move(error)));
}

}  // namespace

Expected<RewrittenGraph> rewrite_graph(Graph graph, const CompileOptions& options,
                                       const Target& target, const ModelSchedules& schedules) {
  if (options.rewritten) return RewrittenGraph{std::move(graph), std::nullopt, {}};
  PassContext context = pass_context(target.main_device(), graph, options.algorithms);
  std::unique_ptr<CostOracle> costs;
  if (!options.plain && target.devices.empty() && options.pipeline.empty()) {
    TW_ASSIGN(costs, schedules.layout_costs(graph, target, options.algorithms));
    context.costs = costs.get();
  }
  TW_TRY(run_passes(graph, context,
                    options.pipeline.empty() ? default_pipeline() : options.pipeline,
                    options.passes));
  check_legal(graph);
  RewrittenGraph rewritten{std::move(graph), std::nullopt, std::move(context.narrowed)};
  if (costs) rewritten.layouts = blocks_of(rewritten.graph);
  return rewritten;
}

// Adds the layers that the lock keeps exact.
static CompileOptions with_exact_layers(CompileOptions options, const ModelSchedules& schedules) {
  options.algorithms.exact.merge(schedules.exact_layers());
  return options;
}

static Expected<ScheduleRemarks> remarks_of(const Graph& graph, const LoweredProgram& lowered,
                                            const std::vector<ChosenSchedule>& chosen,
                                            const Target& target, ModelSchedules& schedules) {
  TW_ASSIGN(ScheduleRemarks out, schedules.review(lowered.kernels, chosen));
  for (std::string& note : idle_notes(lowered.kernels, chosen, target))
    out.notes.push_back(std::move(note));
  for (std::string& note : attention_notes(graph, target.main_device()))
    out.notes.push_back(std::move(note));
  if (const std::string floats = floats_between(graph); !floats.empty())
    out.notes.push_back("floats between quantized values: " + floats);
  return out;
}

// Places all groups, each with the algorithm of its place.
static Expected<std::vector<Placement>> settled_places(
    std::vector<FusedGraph>& fused, const Target& target, const CompileOptions& options,
    const DeviceBackends& devices, ModelSchedules& schedules, ScheduleRemarks& remarks) {
  TW_ASSIGN(std::vector<Placement> placements,
            place(fused, target, devices, schedules, threads_or_all(options.jobs), remarks));
  if (options.plain || target.devices.empty()) return placements;
  for (size_t f = 0; f < fused.size(); ++f)
    TW_TRY(settle_host_part(fused[f], placements[f], target, options, schedules));
  TW_TRY(schedules.read(fused));
  return placements;
}

Expected<LoweredModel> lower_model(Graph imported, const std::map<std::string, int64_t>& dims,
                                   const CompileOptions& given, const Target& target,
                                   const DeviceBackends& devices, StageClock& stages, Dump& dump) {
  const int jobs = threads_or_all(given.jobs);
  LoweredModel out;
  TW_TRY(check_strings(imported, target));
  TW_TRY(dump.write(DumpStage::imported, [&] { return print(imported); }));

  stages.begin("passes");
  TW_ASSIGN(const std::unique_ptr<ModelSchedules> schedules,
            schedules_of(dims, imported.limits, given, target));
  const CompileOptions options = with_exact_layers(given, *schedules);
  out.exact = options.algorithms.exact;
  TW_ASSIGN(RewrittenGraph rewritten,
            rewrite_graph(std::move(imported), options, target, *schedules));
  Graph& graph = rewritten.graph;
  out.layouts = std::move(rewritten.layouts);
  out.nodes = static_cast<int64_t>(graph.order().size());
  TW_TRY(dump.write(DumpStage::optimized, [&] { return print(graph); }));
  if (options.emit == Emit::graph) {
    out.text = print(graph);
    return out;
  }

  TW_ASSIGN(std::vector<FusedGraph> fused, fuse_model(graph, options, target, *schedules));
  FusedGraph& main = fused.front();
  out.groups = static_cast<int64_t>(main.groups.size());
  TW_TRY(dump.write(DumpStage::groups, [&] { return print_groups(graph, main.groups); }));
  if (options.emit == Emit::groups) {
    out.text = print_groups(graph, main.groups);
    return out;
  }

  stages.begin("lower");
  TW_TRY(schedules->read(fused));
  ScheduleRemarks placing;
  TW_ASSIGN(std::vector<Placement> placements,
            settled_places(fused, target, options, devices, *schedules, placing));
  if (!options.plain) {
    out.algorithms = algorithms_of(fused);
    out.lossy = lossy_layers(fused, placements, rewritten.narrowed, target);
  }
  out.host_reasons = host_reasons(fused, placements);
  TW_ASSIGN(LoweredProgram lowered, lower_program(fused, placements, target));
  TW_ASSIGN(std::vector<ChosenSchedule> chosen,
            schedule_all(lowered.kernels, target, *schedules, jobs));
  TW_ASSIGN(out.remarks, remarks_of(graph, lowered, chosen, target, *schedules));
  std::ranges::move(placing.notes, std::back_inserter(out.remarks.notes));
  std::ranges::move(placing.faults, std::back_inserter(out.remarks.faults));
  out.text = text_of(options.emit, lowered.kernels, chosen);
  std::vector<RunKernel> scheduled;
  for (ChosenSchedule& one : chosen) {
    out.schedules.push_back(std::move(one.pin));
    scheduled.push_back(std::move(one.run));
  }
  TW_ASSIGN(out.planned, plan_program(std::move(lowered), std::move(scheduled), target));
  TW_TRY(dump.write(DumpStage::program, [&] { return print(out.planned.program); }));
  return out;
}

}  // namespace tw
