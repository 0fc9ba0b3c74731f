// Times that a log has for a network's convolutions in various layouts, and a cost oracle made from
// them. With it, layouts are chosen for the whole network by measured kernels
// (passes/choose/assign_layouts.h), and by the analytic model where there are no measurements.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measured_algorithms.h"
#include "ir/cost.h"

namespace tw {

// The network with every convolution in blocks of one size. A convolution keeps another layout
// where the analytic model makes this one worse than the best by a factor of more than kWorse.
struct LayoutPlan {
  int64_t block = 0;
  Graph graph;
  std::vector<Group> groups;  // with algorithms and pools
};
constexpr double kWorse = 1.3;
// `graph` is the graph before layouts are assigned. All plans differ from each other. Errors: those
// of the passes.
Expected<std::vector<LayoutPlan>> layout_plans(const Graph& graph, const Target& target,
                                               const AlgorithmOptions& options);

// The best seconds of a convolution's kernel by any algorithm, by the value that it makes and the
// block of that value (0: plain)
using LayoutSeconds = std::map<ValueId, std::map<int64_t, double>>;
Expected<LayoutSeconds> measured_layouts(const Graph& graph, const Target& target,
                                         const AlgorithmOptions& options,
                                         const RecordedTimes& times);

// A convolution with measured layouts gets only those, at their seconds. Measured seconds are
// scaled to analytic ones, in which everything else is costed. So casts are placed as
// settled_costs() places them, bit for bit.
std::unique_ptr<CostOracle> measured_costs(const Graph& graph, const Target& target,
                                           LayoutSeconds measured);
// Costs that fix layouts: blocks by the names of values; 0 for values that are not listed.
std::unique_ptr<CostOracle> settled_costs(std::map<std::string, int64_t> blocks);

}  // namespace tw
