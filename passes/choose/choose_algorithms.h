// The choice of an algorithm for every convolution and matrix product with constant weights. It
// takes the fastest one, by a static cost model or by measurements, that keeps the model within its
// error budget (Target::accuracy) and the growth of its weights within a limit.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/group.h"
#include "ir/target.h"
#include "passes/pass.h"

namespace tw {

// Measured times of kernels, by the anchor of their group.
using AlgorithmSeconds = std::map<NodeId, std::map<Algorithm, double>>;

struct AlgorithmOptions {
  // Limit of all weight bytes, as a multiple of those of direct algorithms; >= 1
  double max_weight_growth = 1.5;
  std::optional<Algorithm> only;  // takes this one wherever it applies, whatever the budgets
  // Measured times replace the model's, whose other estimates are scaled to them
  AlgorithmSeconds measured = {};
  std::map<NodeId, Algorithm> fixed = {};  // by anchor: chosen already, and counted in the budgets
  // As `fixed`, by the value that a product makes; and products that are summed directly in the
  // model's own numbers. Both override `fixed`
  std::map<std::string, Algorithm> settled = {};
  std::set<std::string> exact = {};
};

// The options of the passes over the graph. If products are direct and their weights may not grow,
// constants are folded up to a twentieth of the model's own, and bytes that stand for floats stay
// bytes.
PassContext pass_context(const Target& target, const Graph& graph, const AlgorithmOptions& options);

// An estimate of one algorithm for a group's anchor, by the model of docs/internals/algorithms.md.
struct AlgorithmEstimate {
  double cycles = 0;        // cycles of one core
  double weight_bytes = 0;  // packed weights
  double error = 0;         // expected error, relative to the output's range
  // True if the algorithm multiplies short floats. `error` is then what it adds to the error of
  // direct sums, as a share of the budget, if the layer is the only such one. Among n layers it is
  // smaller by the square root of n.
  bool short_floats = false;
};
// nullopt if the algorithm does not apply. `model_bytes` counts all weights of the model, and so
// decides from which cache they come.
std::optional<AlgorithmEstimate> estimate_algorithm(const Graph& graph, const Group& group,
                                                    Algorithm algorithm, const Target& target,
                                                    double model_bytes);
// True for a convolution or matrix product with constant weights: it has a choice.
bool has_algorithms(const Graph& graph, const Group& group);
// The algorithms with which lower_group can compute the group as it is fused, the direct one first.
std::vector<Algorithm> applicable_algorithms(const Graph& graph, const Group& group,
                                             const Target& target);
// The group's algorithm if the device can compute the group by it, else the direct one.
Algorithm algorithm_on(const Graph& graph, const Group& group, const Target& device);
// True if a pool can follow a convolution by this algorithm in one kernel: the algorithm computes
// whole windows at once.
bool serves_pool(Algorithm algorithm, const op::Pool& pool);
// The largest error among sums of `length` products in f32, relative to their range. `kappa` is the
// factor by which the algorithm's constants enlarge roundings.
double rounding_error(double kappa, double length);
double winograd_kappa(int tile, int stride = 1);  // tiles of tile x tile outputs, 3x3 kernels

struct AlgorithmSummary {
  double direct_bytes = 0, weight_bytes = 0;  // for nodes with a choice
  // Error of an output, relative to its range: the budget limits it
  double error = 0;
};
// Sets Group::algorithm of every group. `taken` is the part of both budgets that other groups use.
AlgorithmSummary choose_algorithms(const Graph& graph, std::vector<Group>& groups,
                                   const Target& target, const AlgorithmOptions& options,
                                   const AlgorithmSummary& taken = {});
// The summary of the algorithms that the groups have.
AlgorithmSummary summary_of(const Graph& graph, const std::vector<Group>& groups,
                            const Target& target);
AlgorithmSummary operator+(const AlgorithmSummary& a, const AlgorithmSummary& b);

}  // namespace tw
