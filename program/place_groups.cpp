// The choice is a PBQP. Its nodes are groups, the alternatives of a node are the processor and the
// devices, and an edge costs the copy of a value from the group that makes it to one that reads it.
#include "program/place_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "ir/kernel/work.h"
#include "kernels/lower.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/choose/pbqp.h"
#include "passes/storage.h"

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kIterations = 8;    // assumed where no trip count is known
constexpr double kEfficiency = 0.5;  // assumed share of the cores' peak rate

// The value with a small size in place of each symbol
double small(const Expr& e) {
  return static_cast<double>(eval_int(e, [](std::string_view) { return int64_t{8}; }));
}

// The origin of a value that may have to be copied. The maker's place is still open.
struct Source {
  std::optional<size_t> node;  // the maker in the problem; nullopt: the processor
  double often = 1;            // copies in a run
  double bytes = 0;
};

// One problem for all graphs. Besides a node for each group there is one for each result of If and
// Loop: the memory where the result is left. A carried value is there in all iterations.
class Placer {
 public:
  Placer(const std::vector<FusedGraph>& fused, const Target& target,
         const std::vector<std::vector<DeviceKernels>>& on_device)
      : fused_(fused), target_(target), on_device_(on_device), places_(target.devices.size() + 1) {
    for (const std::vector<DeviceKernels>& graph : on_device) {
      std::vector<std::vector<Work>>& works = work_.emplace_back();
      for (const DeviceKernels& device : graph) {
        std::vector<Work>& work = works.emplace_back();
        for (const LoweredKernel& kernel : device.kernels)
          work.push_back(count_work(kernel.lowered.kernel));
      }
    }
    for (const FusedGraph& one : fused) storages_.emplace_back(*one.graph, one.groups);
    often_.assign(fused.size(), 1);
    given_.resize(fused.size());
    made_by_.resize(fused.size());
  }

  std::vector<Placement> run() {
    std::vector<Placement> out(fused_.size());
    for (size_t g = 0; g < fused_.size(); ++g) add_nodes(g, out[g]);
    for (size_t g = 0; g < fused_.size(); ++g)
      for (size_t i = 0; i < fused_[g].groups.size(); ++i) connect_group(g, i);
    connect_ends();
    settle_ties();
    const PbqpSolution solution = solve(problem_);
    const auto choice = [&](size_t node) { return static_cast<int>(solution.choice[node]); };
    for (size_t g = 0; g < fused_.size(); ++g) {
      const std::vector<Group>& groups = fused_[g].groups;
      out[g].devices.resize(groups.size());
      for (size_t i = 0; i < groups.size(); ++i) {
        out[g].devices[i] = choice(first_[g] + i);
        std::string& reason = out[g].reasons[i];
        if (out[g].devices[i] == 0 && reason.empty() && !storages_[g].in_place(groups[i]))
          reason = "faster on the processor, by estimate";
      }
    }
    for (const Result& result : results_)
      out[result.graph].results[result.value] = choice(result.node);
    return out;
  }

 private:
  struct Result {
    size_t graph;
    int32_t value;
    size_t node;
  };

  const Graph& graph(size_t g) const { return *fused_[g].graph; }
  double bytes_of(size_t g, ValueId v) const { return small(byte_count(graph(g).value(v).type)); }

  // Adds nodes for the graph's groups and for the results of those that run regions, and notes the
  // sources of the regions' inputs. A graph comes before its regions.
  void add_nodes(size_t g, Placement& placement) {
    const std::vector<Group>& groups = fused_[g].groups;
    first_.push_back(problem_.nodes.size());
    placement.reasons.resize(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      for (ValueId v : graph(g).node(groups[i].nodes.back()).outputs())
        made_by_[g][v.index] = problem_.nodes.size();
      problem_.nodes.push_back(costs(g, i, placement.reasons[i]));
    }
    for (const Group& group : groups) {
      const Node& node = graph(g).node(group.anchor);
      if (!regions_of(node.attrs).empty()) add_results(g, node);
    }
  }

  void add_results(size_t g, const Node& node) {
    const auto* loop = std::get_if<op::Loop>(&node.attrs);
    const size_t lead = !loop || loop->conditional ? 1 : 0;
    const std::vector<ValueId> made = node.outputs();
    const std::vector<const Graph*> regions = regions_of(node.attrs);
    const size_t count = made.size() - (loop && loop->conditional ? 1 : 0);
    std::vector<size_t> nodes;
    for (size_t i = 0; i < count; ++i) {
      nodes.push_back(problem_.nodes.size());
      made_by_[g][made[i].index] = nodes.back();
      results_.push_back({g, made[i].index, nodes.back()});
      const bool rows = loop && i >= static_cast<size_t>(loop->carried);
      const Graph& last = *regions.back();
      const ValueId row = last.outputs()[i + (loop ? lead : 0)].value;
      problem_.nodes.push_back(result_costs(graph(g).value(made[i]).type,
                                            rows ? byte_count(last.value(row).type) : Expr()));
    }
    size_t first = lead;
    for (const Graph* region : regions) {
      const size_t inner = number_of(*region);
      often_[inner] = often_[g] * (loop ? iterations(*loop) : 1);
      for (size_t i = 0; i < region->inputs().size(); ++i) {
        const bool carried = loop && i < static_cast<size_t>(loop->carried);
        const Source from = source(g, node.inputs[first + i]);
        given_[inner][region->inputs()[i].index] = carried
                                                       ? Source{nodes[i], often_[inner], from.bytes}
                                                       : from;
        if (carried) begins_.emplace_back(nodes[i], from);
      }
      first += region->inputs().size();
      for (size_t i = 0; i < region->outputs().size(); ++i) {
        const size_t condition = loop ? lead : 0;  // leading outputs that are no results
        ends_.push_back({inner, region->outputs()[i].value,
                         i < condition ? std::nullopt : std::optional(nodes[i - condition])});
      }
    }
  }

  static double iterations(const op::Loop& loop) {
    return loop.trip.empty() ? kIterations : std::max(1.0, small(loop.trip[0]));
  }

  // The costs of a result's places. `row` is the bytes of a row; undefined if the result is no
  // stack of rows.
  std::vector<double> result_costs(const TensorType& type, const Expr& row) const {
    std::vector<double> costs(places_);
    const bool at_home = type.dtype == DType::string || is_data_dependent(byte_count(type));
    for (size_t place = 1; place < places_; ++place)
      if (at_home || (row.defined() && !finds_rows(target_.devices[place - 1], row)))
        costs[place] = kNever;
    return costs;
  }

  size_t number_of(const Graph& graph) const {
    return static_cast<size_t>(std::ranges::find(fused_, &graph, &FusedGraph::graph) -
                               fused_.begin());
  }

  Source source(size_t g, ValueId v) const {
    const auto maker = made_by_[g].find(v.index);
    if (maker != made_by_[g].end()) return {maker->second, often_[g], bytes_of(g, v)};
    const auto given = given_[g].find(v.index);
    if (given != given_[g].end()) return given->second;
    // An input of the model, or a constant, which costs no copy
    return {std::nullopt, 1, graph(g).is_constant(v) ? 0 : bytes_of(g, v)};
  }

  std::vector<double> costs(size_t g, size_t i, std::string& reason) const {
    std::vector<double> seconds(places_);
    if (storages_[g].in_place(fused_[g].groups[i])) return seconds;
    bool matters = false;  // true if a device is compared with the processor by time
    for (size_t place = 1; place < places_; ++place) {
      const Target& device = target_.devices[place - 1];
      const std::string& problem = problem_of(g, i, place);
      if (!problem.empty()) reason += (reason.empty() ? "" : "; ") + device.name + ": " + problem;
      seconds[place] = !problem.empty()  ? kNever
                       : device.take_all ? 0
                                         : often_[g] * on_device(g, i, place);
      matters |= problem.empty() && !device.take_all;
    }
    seconds[0] = often_[g] * (core_rates(target_).fork_join + (matters ? on_host(g, i) : 0));
    return seconds;
  }

  double on_host(size_t g, size_t i) const {
    Group own = fused_[g].groups[i];
    own.algorithm = Algorithm::direct;  // the processor's algorithms are chosen after the places
    Expected<LoweredGroup> lowered = lower_group(graph(g), own, target_);
    if (!lowered) return llvm::consumeError(lowered.takeError()), 0;  // lowering reports the error
    const Work work = count_work(lowered->kernel);
    const CoreRates rates = core_rates(target_);
    const DType operand = lowered->kernel.buffers.empty() ? DType::f32
                                                          : lowered->kernel.buffers[0].dtype;
    const double cycles = small(work.flops) / 2 /
                              (rates.multiply_adds(operand) * target_.cores * kEfficiency) +
                          small(work.weight_bytes + work.tensor_bytes) / rates.tensor_bytes;
    return cycles / rates.clock;
  }

  const std::string& problem_of(size_t g, size_t i, size_t place) const {
    const DeviceKernels& device = on_device_[g][place - 1];
    const std::optional<size_t> kernel = device.kernel_of[i];
    return kernel ? device.refusals[*kernel] : device.problems[i];
  }

  double on_device(size_t g, size_t i, size_t place) const {
    const Target& device = target_.devices[place - 1];
    const Work& work = work_[g][place - 1][on_device_[g][place - 1].kernel_of[i].value()];
    return small(work.flops) / device.rates.flops +
           small(work.weight_bytes + work.tensor_bytes) / device.rates.bytes + device.rates.launch;
  }

  // Adds the copies of outputs of graphs, and of the values that loops begin with.
  void connect_ends() {
    for (const Graph::Output& output : graph(0).outputs())
      if (const auto maker = made_by_[0].find(output.value.index); maker != made_by_[0].end())
        add_from_host(maker->second, {std::nullopt, 1, bytes_of(0, output.value)});
    for (const auto& [node, from] : begins_) add_copy(from, node);
    for (const End& end : ends_) {
      Source from = source(end.graph, end.value);
      from.often = std::max(from.often, often_[end.graph]);  // a copy at the end of each iteration
      if (end.node && from.node != end.node) add_copy(from, *end.node);
      if (!end.node && from.node) add_from_host(*from.node, from);
    }
  }

  // Adds the copies of the group's operands. A group without a kernel only renames or gathers
  // memory, so it must be where its operand is. The call that runs regions reads only a condition
  // itself.
  void connect_group(size_t g, size_t i) {
    const size_t own = first_[g] + i;
    const Group& group = fused_[g].groups[i];
    std::set<size_t> seen;
    for (NodeId id : group.nodes) {
      const Node& node = graph(g).node(id);
      const auto* loop = std::get_if<op::Loop>(&node.attrs);
      size_t count = node.inputs.size();
      if (!regions_of(node.attrs).empty()) count = !loop || loop->conditional ? 1 : 0;
      for (const ValueId input : std::span(node.inputs).first(count)) {
        if (!input.valid() || graph(g).is_constant(input)) continue;
        Source from = source(g, input);
        if (!from.node) {
          add_from_host(own, from);
        } else if (*from.node != own && seen.insert(*from.node).second) {
          if (storages_[g].in_place(group)) from.bytes = kNever;
          add_copy(from, own);
        }
      }
    }
  }

  // Adds the cost that `node` pays if its place differs from the source's.
  void add_copy(const Source& from, size_t node) {
    if (!from.node) return add_from_host(node, from);
    problem_.edges.push_back({*from.node, node, copies(from)});
    if (is_result(node) || is_result(*from.node)) loose_.push_back({from.node, node, from.often});
  }

  void add_from_host(size_t node, const Source& from) {
    if (from.bytes == 0) return;
    if (is_result(node)) loose_.push_back({std::nullopt, node, from.often});
    for (size_t place = 1; place < places_; ++place)
      problem_.nodes[node][place] += from.often * copy_seconds(place, from.bytes);
  }

  bool is_result(size_t node) const {
    return std::ranges::find(results_, node, &Result::node) != results_.end();
  }
  bool is_free(size_t place) const { return target_.devices[place - 1].take_all; }

  double copy_seconds(size_t place, double bytes) const {
    const Target& device = target_.devices[place - 1];
    return device.take_all ? 0 : bytes / device.rates.copy_bytes + device.rates.copy;
  }

  std::vector<std::vector<double>> copies(const Source& from) const {
    std::vector<std::vector<double>> cost(places_, std::vector<double>(places_));
    for (size_t a = 0; a < places_; ++a)
      for (size_t b = 0; b < places_; ++b) {
        if (a == b) continue;
        cost[a][b] = from.bytes == kNever ? kNever
                                          : from.often * ((a ? copy_seconds(a, from.bytes) : 0) +
                                                          (b ? copy_seconds(b, from.bytes) : 0));
      }
    return cost;
  }

  // Breaks ties of devices with take_all. Their copies are free, so no cost says where results are
  // best. Each copy gets a small cost, so that results settle where they are copied least often.
  // All of these together cost less than one group on the processor.
  void settle_ties() {
    double all = 0;
    for (const Loose& copy : loose_) all += copy.often;
    for (const Loose& copy : loose_) {
      const double cost = core_rates(target_).fork_join / 2 * copy.often / all;
      const auto between = [&](size_t a, size_t b) {
        return a != b && ((a && is_free(a)) || (b && is_free(b))) ? cost : 0;
      };
      if (!copy.from) {
        for (size_t place = 1; place < places_; ++place)
          problem_.nodes[copy.to][place] += between(0, place);
        continue;
      }
      PbqpEdge edge{*copy.from, copy.to, {}};
      for (size_t a = 0; a < places_; ++a) {
        edge.cost.emplace_back();
        for (size_t b = 0; b < places_; ++b) edge.cost.back().push_back(between(a, b));
      }
      problem_.edges.push_back(std::move(edge));
    }
  }

  struct Loose {
    std::optional<size_t> from;  // nullopt: the processor
    size_t to;
    double often;
  };
  struct End {
    size_t graph;
    ValueId value;
    std::optional<size_t> node;  // nullopt: the processor reads it
  };

  const std::vector<FusedGraph>& fused_;
  const Target& target_;
  const std::vector<std::vector<DeviceKernels>>& on_device_;
  const size_t places_;
  std::vector<std::vector<std::vector<Work>>> work_;  // by graph, device and kernel
  std::vector<Storage> storages_;                     // by graph
  std::vector<double> often_;                         // by graph: its runs in one run of the model
  std::vector<size_t> first_;                         // by graph: the node of its first group
  std::vector<std::map<int32_t, size_t>> made_by_;    // by graph and value: a node
  std::vector<std::map<int32_t, Source>> given_;      // by graph and value, for inputs of regions
  std::vector<Result> results_;
  std::vector<std::pair<size_t, Source>> begins_;  // carried values before the first iteration
  std::vector<End> ends_;                          // outputs of regions
  std::vector<Loose> loose_;                       // copies from or to results
  PbqpProblem problem_;
};

}  // namespace

std::vector<Constant> constants_of(const LoweredGroup& group) {
  std::vector<Constant> constants;
  for (const LoweredArgument& argument : group.arguments)
    constants.push_back(argument.constant ? Constant{argument.blob, argument.pack} : Constant{});
  return constants;
}

DeviceKernels lower_for_device(const FusedGraph& fused, const Target& target, int device) {
  const Graph& graph = *fused.graph;
  const Storage storage(graph, fused.groups);
  DeviceKernels out;
  out.kernel_of.resize(fused.groups.size());
  out.problems.resize(fused.groups.size());
  std::map<std::string, size_t> known;
  for (size_t g = 0; g < fused.groups.size(); ++g) {
    const Group& group = fused.groups[g];
    if (storage.in_place(group)) continue;
    if (const OpAttrs& attrs = graph.node(group.anchor).attrs; !regions_of(attrs).empty()) {
      out.problems[g] = std::holds_alternative<op::Loop>(attrs)
                            ? "the processor counts its iterations, whose kernels have their places"
                            : "the processor takes one of its branches, whose kernels have theirs";
      continue;
    }
    const Target& place = target.devices[static_cast<size_t>(device) - 1];
    Group own = group;
    own.algorithm = algorithm_on(graph, group, place);
    Expected<LoweredGroup> lowered = lower_group(graph, own, place);
    if (!lowered) {
      out.problems[g] = error_text(lowered.takeError());
      continue;
    }
    // A device may refuse a kernel because of its constants, so they belong to the key.
    std::string key = definition_hash(*lowered);
    for (const LoweredArgument& argument : lowered->arguments)
      if (argument.constant)
        key += ":" + std::to_string(reinterpret_cast<uintptr_t>(argument.blob.bytes.data()));
    const auto [entry, fresh] = known.try_emplace(std::move(key), out.kernels.size());
    if (fresh) out.kernels.push_back({std::move(*lowered), device, "", &graph, &group});
    out.kernel_of[g] = entry->second;
  }
  return out;
}

std::vector<Placement> place_groups(const std::vector<FusedGraph>& fused, const Target& target,
                                    const std::vector<std::vector<DeviceKernels>>& on_device) {
  if (target.devices.empty()) {
    std::vector<Placement> out;
    for (const FusedGraph& one : fused)
      out.push_back(
          {std::vector<int>(one.groups.size()), {}, std::vector<std::string>(one.groups.size())});
    return out;
  }
  return Placer(fused, target, on_device).run();
}

}  // namespace tw
