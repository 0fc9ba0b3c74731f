// Picks the algorithm of every convolution and matrix product with constant weights: the fastest by
// a static cost model, or as measured, that keeps the model within its error budget
// (Target::accuracy) and its weights within their growth.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/group.h"
#include "ir/target.h"
#include "passes/pass.h"

namespace tw {

// What kernels took, by the anchor of their group.
using AlgorithmSeconds = std::map<NodeId, std::map<Algorithm, double>>;

struct AlgorithmOptions {
  // Weight bytes in all, of what they are with direct algorithms only; >= 1
  double max_weight_growth = 1.5;
  std::optional<Algorithm> only;  // this one wherever it applies, whatever the budgets
  // Stands in for the model, whose figures for the rest are brought to the same measure
  AlgorithmSeconds measured = {};
  std::map<NodeId, Algorithm> fixed = {};  // by anchor: already chosen, within the budgets
  // The same by the value that a product makes, and products that are summed directly, in the
  // model's own numbers: both go before `fixed`
  std::map<std::string, Algorithm> settled = {};
  std::set<std::string> exact = {};
};

// The options of the passes over the graph. Where products are direct and their weights
// may not grow, constants are folded up to a twentieth of the model's own, and bytes that stand for
// floats stay bytes.
PassContext pass_context(const Target& target, const Graph& graph, const AlgorithmOptions& options);

// What one algorithm makes of a group's anchor, by the model of docs/internals/algorithms.md.
struct AlgorithmEstimate {
  double cycles = 0;        // of one core
  double weight_bytes = 0;  // packed
  double error = 0;         // expected, relative to the output's range
  // It multiplies short floats: error is what the algorithm adds to that of direct sums, as a share
  // of the budget, were the layer the network's only one in them. Of n it is a root of n less.
  bool short_floats = false;
};
// nullopt: the algorithm does not apply. model_bytes: all weights of the model, which decide what
// cache they come from.
std::optional<AlgorithmEstimate> estimate_algorithm(const Graph& graph, const Group& group,
                                                    Algorithm algorithm, const Target& target,
                                                    double model_bytes);
// A convolution or matrix product with constant weights: what has a choice.
bool has_algorithms(const Graph& graph, const Group& group);
// Those that lower_group can compute the group with as it is fused, the direct one first.
std::vector<Algorithm> applicable_algorithms(const Graph& graph, const Group& group,
                                             const Target& target);
// The group's, where the device computes it by that one, else the direct one.
Algorithm algorithm_on(const Graph& graph, const Group& group, const Target& device);
// Whether a pool may follow a convolution by the algorithm in one kernel: its windows are whole in
// what is computed at once.
bool serves_pool(Algorithm algorithm, const op::Pool& pool);
// Largest error among sums of so many products in f32, relative to their range; kappa: how the
// algorithm's constants enlarge its roundings.
double rounding_error(double kappa, double length);
double winograd_kappa(int tile, int stride = 1);  // of tiles of tile x tile outputs, 3x3

struct AlgorithmSummary {
  double direct_bytes = 0, weight_bytes = 0;  // of the nodes looked at
  // Of an output, relative to its range: what is held below the budget
  double error = 0;
};
// Sets Group::algorithm of every group. taken: of both budgets, by groups that are not looked at.
AlgorithmSummary choose_algorithms(const Graph& graph, std::vector<Group>& groups,
                                   const Target& target, const AlgorithmOptions& options,
                                   const AlgorithmSummary& taken = {});
// Of algorithms that groups have.
AlgorithmSummary summary_of(const Graph& graph, const std::vector<Group>& groups,
                            const Target& target);
AlgorithmSummary operator+(const AlgorithmSummary& a, const AlgorithmSummary& b);

}  // namespace tw
