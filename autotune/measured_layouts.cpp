#include "autotune/measured_layouts.h"

#include <algorithm>
#include <cmath>

#include "passes/choose/analytic_cost.h"
#include "passes/choose/assign_layouts.h"
#include "passes/choose/layout_costs.h"
#include "passes/fuse_groups.h"

namespace tw {
namespace {

constexpr double kNeverLaidOut = 1e6;  // seconds of a layout that must not be chosen

class Measured : public KernelCosts {
 public:
  Measured(LayoutSeconds measured, double scale) : measured_(std::move(measured)), scale_(scale) {}
  double seconds(const WorkEstimate& work, const Target& target) const override {
    return analytic_.seconds(work, target);
  }
  std::optional<double> kernel(const Graph&, const Node& node, const Layout& out) const override {
    const auto known = measured_.find(node.output);
    if (known == measured_.end()) return std::nullopt;
    const auto best = known->second.find(out.block);
    // An estimate does not replace a measured time.
    return best == known->second.end() ? kNeverLaidOut : best->second / scale_;
  }

 private:
  LayoutSeconds measured_;
  double scale_;  // measured seconds per analytic second
  AnalyticCost analytic_;
};

class Settled : public KernelCosts {
 public:
  explicit Settled(std::map<std::string, int64_t> blocks) : blocks_(std::move(blocks)) {}
  double seconds(const WorkEstimate& work, const Target& target) const override {
    return analytic_.seconds(work, target);
  }
  std::optional<double> kernel(const Graph& graph, const Node& node,
                               const Layout& out) const override {
    const auto block = blocks_.find(graph.value(node.output).name);
    return out.block == (block == blocks_.end() ? 0 : block->second) ? 0 : kNeverLaidOut;
  }

 private:
  std::map<std::string, int64_t> blocks_;
  AnalyticCost analytic_;
};

// Puts convolutions into blocks of one size where that is reasonable, and leaves everything else to
// its own best layout.
class Uniform : public KernelCosts {
 public:
  Uniform(const Graph& graph, const Target& target, int64_t block)
      : costs_(graph, target, analytic_), block_(block) {}
  double seconds(const WorkEstimate& work, const Target& target) const override {
    return analytic_.seconds(work, target);
  }
  std::optional<double> kernel(const Graph&, const Node& node, const Layout& out) const override {
    if (!std::holds_alternative<op::Conv>(node.attrs)) return std::nullopt;
    const double own = costs_.node(node, out);
    double best = own;
    for (const Layout& other : costs_.alternatives(node))
      best = std::min(best, costs_.node(node, other));
    // One second is more than any sum of casts.
    return own + (out.block == block_ && own <= kWorse * best ? 0 : 1);
  }

 private:
  AnalyticCost analytic_;
  LayoutCosts costs_;
  int64_t block_;
};

double analytic_seconds(const LayoutCosts& costs, const Node& node, int64_t block) {
  for (const Layout& layout : costs.alternatives(node))
    if (layout.block == block) return costs.node(node, layout);
  return 0;
}

}  // namespace

Expected<std::vector<LayoutPlan>> layout_plans(const Graph& graph, const Target& target,
                                               const AlgorithmOptions& options) {
  std::vector<LayoutPlan> plans;
  std::vector<std::string> seen;
  for (int64_t block = target.lanes(4); block >= 4; block /= 2) {
    LayoutPlan plan{block, graph, {}};
    const Uniform uniform(graph, target, block);
    PassContext context{target};
    context.costs = &uniform;
    TW_TRY(assign_layouts(plan.graph, context).takeError());
    std::string text = print(plan.graph);
    if (std::ranges::find(seen, text) != seen.end()) continue;
    seen.push_back(std::move(text));
    plan.groups = fuse_groups(plan.graph);
    choose_algorithms(plan.graph, plan.groups, target, options);
    fuse_pools(plan.graph, plan.groups);
    plans.push_back(std::move(plan));
  }
  return plans;
}

Expected<LayoutSeconds> measured_layouts(const Graph& graph, const Target& target,
                                         const AlgorithmOptions& options,
                                         const RecordedTimes& times) {
  LayoutSeconds out;
  TW_ASSIGN(const std::vector<LayoutPlan> plans, layout_plans(graph, target, options));
  if (plans.size() < 2) return out;
  for (const LayoutPlan& plan : plans) {
    TW_ASSIGN(const std::vector<Task> tasks, tasks_of(plan.graph, plan.groups, target));
    std::map<std::string, double> best;
    for (const Task& task : tasks)
      for (const Variant& variant : task.variants) {
        TW_ASSIGN(const std::optional<double> known,
                  times.of(task.key, definition_hash(variant.lowered)));
        if (known)
          best[task.key] = std::min(*known, best.try_emplace(task.key, *known).first->second);
      }
    for (const Group& group : plan.groups) {
      const Node& anchor = plan.graph.node(group.anchor);
      const auto known = best.find(task_key(plan.graph, group));
      if (known == best.end() || !std::holds_alternative<op::Conv>(anchor.attrs)) continue;
      const auto [entry, fresh] = out[anchor.output].try_emplace(
          plan.graph.value(anchor.output).type.layout.block, known->second);
      if (!fresh) entry->second = std::min(entry->second, known->second);
    }
  }
  // A time for one layout alone says nothing about the others.
  std::erase_if(out, [](const auto& known) { return known.second.size() < 2; });
  return out;
}

std::unique_ptr<CostOracle> measured_costs(const Graph& graph, const Target& target,
                                           LayoutSeconds measured) {
  const AnalyticCost analytic{};
  const LayoutCosts costs(graph, target, analytic);
  std::vector<double> ratios;
  for (const NodeId id : graph.order()) {
    const auto known = measured.find(graph.node(id).output);
    if (known == measured.end()) continue;
    for (const auto& [block, seconds] : known->second)
      if (const double expected = analytic_seconds(costs, graph.node(id), block); expected > 0)
        ratios.push_back(seconds / expected);
  }
  std::ranges::sort(ratios);
  return std::make_unique<Measured>(std::move(measured),
                                    ratios.empty() ? 1 : ratios[ratios.size() / 2]);
}

std::unique_ptr<CostOracle> settled_costs(std::map<std::string, int64_t> blocks) {
  return std::make_unique<Settled>(std::move(blocks));
}

}  // namespace tw
