// What a log knows of a network's convolutions in other layouts than the usual ones, and the cost
// oracle that makes of it: layouts are then chosen for the whole network by measured kernels
// (passes/choose/assign_layouts.h), with the analytic model for what was not measured.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measured_algorithms.h"
#include "ir/cost.h"

namespace tw {

// The network with every convolution in blocks of one size, where that is no worse than kWorse of
// the best by the analytic model.
struct LayoutPlan {
  int64_t block = 0;
  Graph graph;
  std::vector<Group> groups;  // with algorithms and pools
};
constexpr double kWorse = 1.3;
// graph: as it is before layouts are assigned. Only plans that differ from each other. Errors:
// those of the passes.
Expected<std::vector<LayoutPlan>> layout_plans(const Graph& graph, const Target& target,
                                               const AlgorithmOptions& options);

// By the value that a convolution makes, and the block that it is written in (0: plain): the best
// seconds of its kernel by any algorithm.
using LayoutSeconds = std::map<ValueId, std::map<int64_t, double>>;
Expected<LayoutSeconds> measured_layouts(const Graph& graph, const Target& target,
                                         const AlgorithmOptions& options,
                                         const KernelSeconds& seconds);

// Of a convolution with measured layouts only those are taken, by their seconds. All else costs the
// analytic seconds, of which measured kernels took so many times theirs: casts then are as
// settled_costs() places them, bit for bit.
std::unique_ptr<CostOracle> measured_costs(const Graph& graph, const Target& target,
                                           LayoutSeconds measured);
// Layouts that are settled: blocks by the names of values; 0 for those that are not there.
std::unique_ptr<CostOracle> settled_costs(std::map<std::string, int64_t> blocks);

}  // namespace tw
