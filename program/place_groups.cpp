// A PBQP: nodes are groups, alternatives the places, an edge costs the copy of the value that one
// group makes and the other reads.
#include "program/place_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "ir/kernel/work.h"
#include "kernels/lower.h"
#include "passes/choose/pbqp.h"
#include "passes/storage.h"

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kNominal = 8;      // stands for a symbol
constexpr double kEfficiency = 0.5;  // of the multiply-adds of all cores

double nominal(const Expr& e) {
  return static_cast<double>(eval_int(e, [](std::string_view) { return kNominal; }));
}

class Placer {
 public:
  Placer(const FusedGraph& fused, const Target& target, const std::vector<DeviceKernels>& on_device)
      : graph_(*fused.graph),
        groups_(fused.groups),
        target_(target),
        on_device_(on_device),
        storage_(graph_, groups_) {
    for (const DeviceKernels& device : on_device) {
      std::vector<Work>& work = work_.emplace_back();
      for (const LoweredKernel& kernel : device.kernels)
        work.push_back(count_work(kernel.lowered.kernel));
    }
  }

  Placement run() {
    const size_t places = target_.devices.size() + 1;
    Placement placement{std::vector<int>(groups_.size()), std::vector<std::string>(groups_.size())};
    PbqpProblem problem;
    std::map<int32_t, size_t> maker;  // group that makes the value with this index
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (ValueId v : graph_.node(groups_[g].nodes.back()).outputs()) maker[v.index] = g;
      problem.nodes.push_back(costs(g, places, placement.reasons[g]));
    }
    for (size_t g = 0; g < groups_.size(); ++g) connect(g, maker, problem);
    const PbqpSolution solution = solve(problem);
    for (size_t g = 0; g < groups_.size(); ++g) {
      placement.devices[g] = static_cast<int>(solution.choice[g]);
      if (placement.devices[g] == 0 && placement.reasons[g].empty() &&
          !storage_.in_place(groups_[g]))
        placement.reasons[g] = "faster on the processor, by estimate";
    }
    return placement;
  }

 private:
  std::vector<double> costs(size_t g, size_t places, std::string& reason) const {
    std::vector<double> seconds(places);
    if (storage_.in_place(groups_[g])) return seconds;
    bool matters = false;  // what the processor takes for it
    for (size_t place = 1; place < places; ++place) {
      const Target& device = target_.devices[place - 1];
      const std::string& problem = problem_of(g, place);
      if (!problem.empty()) reason += (reason.empty() ? "" : "; ") + device.name + ": " + problem;
      seconds[place] = !problem.empty() ? kNever : device.take_all ? 0 : on_device(g, place);
      matters |= problem.empty() && !device.take_all;
    }
    seconds[0] = core_rates(target_).fork_join + (matters ? on_host(g) : 0);
    return seconds;
  }

  double on_host(size_t g) const {
    Expected<LoweredGroup> lowered = lower_group(graph_, groups_[g], target_);
    if (!lowered) return llvm::consumeError(lowered.takeError()), 0;  // building the program tells
    const Work work = count_work(lowered->kernel);
    const CoreRates rates = core_rates(target_);
    const DType operand = lowered->kernel.buffers.empty() ? DType::f32
                                                          : lowered->kernel.buffers[0].dtype;
    const double cycles = nominal(work.flops) / 2 /
                              (rates.multiply_adds(operand) * target_.cores * kEfficiency) +
                          nominal(work.weight_bytes + work.tensor_bytes) / rates.tensor_bytes;
    return cycles / rates.clock;
  }

  // Why the group does not run on the device; "": it does.
  const std::string& problem_of(size_t g, size_t place) const {
    const DeviceKernels& device = on_device_[place - 1];
    const std::optional<size_t> kernel = device.kernel_of[g];
    return kernel ? device.refusals[*kernel] : device.problems[g];
  }

  double on_device(size_t g, size_t place) const {
    const Target& device = target_.devices[place - 1];
    const Work& work = work_[place - 1][on_device_[place - 1].kernel_of[g].value()];
    return nominal(work.flops) / device.rates.flops +
           nominal(work.weight_bytes + work.tensor_bytes) / device.rates.bytes +
           device.rates.launch;
  }

  // A group without a kernel is where the memory is that it only renames or gathers; other values
  // are copied where they are read elsewhere.
  void connect(size_t g, const std::map<int32_t, size_t>& maker, PbqpProblem& problem) const {
    std::set<size_t> seen;
    for (NodeId id : groups_[g].nodes)
      for (ValueId input : graph_.node(id).inputs) {
        if (!input.valid()) continue;
        auto found = maker.find(input.index);
        if (found == maker.end()) {
          if (!graph_.is_constant(input)) add_from_host(g, input, problem);
          continue;
        }
        if (found->second == g || !seen.insert(found->second).second) continue;
        const double bytes = storage_.in_place(groups_[g])
                                 ? kNever
                                 : nominal(byte_count(graph_.value(input).type));
        problem.edges.push_back({found->second, g, copies(bytes, problem.nodes[g].size())});
      }
    const std::vector<ValueId> made = graph_.node(groups_[g].nodes.back()).outputs();
    for (const Graph::Output& output : graph_.outputs())
      if (std::ranges::count(made, output.value)) add_from_host(g, output.value, problem);
  }

  void add_from_host(size_t g, ValueId v, PbqpProblem& problem) const {
    for (size_t place = 1; place < problem.nodes[g].size(); ++place)
      problem.nodes[g][place] += copy_seconds(place, nominal(byte_count(graph_.value(v).type)));
  }

  double copy_seconds(size_t place, double bytes) const {
    const Target& device = target_.devices[place - 1];
    return device.take_all ? 0 : bytes / device.rates.copy_bytes + device.rates.copy;
  }

  std::vector<std::vector<double>> copies(double bytes, size_t places) const {
    std::vector<std::vector<double>> cost(places, std::vector<double>(places));
    for (size_t a = 0; a < places; ++a)
      for (size_t b = 0; b < places; ++b) {
        if (a == b) continue;
        cost[a][b] = bytes == kNever
                         ? kNever
                         : (a ? copy_seconds(a, bytes) : 0) + (b ? copy_seconds(b, bytes) : 0);
      }
    return cost;
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const Target& target_;
  const std::vector<DeviceKernels>& on_device_;
  std::vector<std::vector<Work>> work_;  // by device, by kernel
  Storage storage_;
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
    Expected<LoweredGroup> lowered = lower_group(graph, group,
                                                 target.devices[static_cast<size_t>(device) - 1]);
    if (!lowered) {
      out.problems[g] = error_text(lowered.takeError());
      continue;
    }
    // Whether a device runs it may depend on its constants
    std::string key = kernel_hash(lowered->kernel);
    for (const LoweredArgument& argument : lowered->arguments)
      if (argument.constant)
        key += ":" + std::to_string(reinterpret_cast<uintptr_t>(argument.blob.bytes.data()));
    const auto [entry, fresh] = known.try_emplace(std::move(key), out.kernels.size());
    if (fresh) out.kernels.push_back({std::move(*lowered), device, "", &graph, &group});
    out.kernel_of[g] = entry->second;
  }
  return out;
}

Placement place_groups(const FusedGraph& fused, const Target& target,
                       const std::vector<DeviceKernels>& on_device) {
  if (target.devices.empty())
    return {std::vector<int>(fused.groups.size()), std::vector<std::string>(fused.groups.size())};
  return Placer(fused, target, on_device).run();
}

}  // namespace tw
