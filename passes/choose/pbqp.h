// Partitioned boolean quadratic programming. Every node takes one of its alternatives such that the
// sum of node costs and edge costs (a matrix over both ends' alternatives) is least. Layouts and
// placements are chosen in this way.
#pragma once
#include <cstddef>
#include <vector>

namespace tw {

struct PbqpEdge {
  size_t a = 0, b = 0;                    // a != b; costs of several edges between two nodes add up
  std::vector<std::vector<double>> cost;  // [alternative of a][alternative of b]
};
struct PbqpProblem {
  // Cost of every alternative, at least one for each node; infinity: impossible
  std::vector<std::vector<double>> nodes;
  std::vector<PbqpEdge> edges;
};
struct PbqpSolution {
  std::vector<size_t> choice;  // by node
  double cost = 0;
  // false if the heuristic decided a node with three or more neighbours
  bool optimal = true;
};
// Folds nodes with at most two neighbours into their neighbours exactly (R0, R1, R2). If only nodes
// with more neighbours remain, the one with the most takes the alternative that is cheapest locally
// (RN). Deterministic.
PbqpSolution solve(const PbqpProblem& problem);

// Costs that differ only by rounding count as equal, and the first alternative wins. So the unit of
// costs, such as a clock, decides nothing.
inline bool costs_less(double a, double b) { return a < b * (1 - 1e-9); }

}  // namespace tw
