// Partitioned boolean quadratic programming: every node takes one of its alternatives so that the
// sum of node costs and of edge costs (a matrix over both ends' alternatives) is least. Used for
// data layouts.
#pragma once
#include <cstddef>
#include <vector>

namespace tw {

struct PbqpEdge {
  size_t a = 0, b = 0;                    // a != b; several edges between two nodes add up
  std::vector<std::vector<double>> cost;  // [alternative of a][alternative of b]
};
struct PbqpProblem {
  // Cost of every alternative; at least one each; infinity: not possible
  std::vector<std::vector<double>> nodes;
  std::vector<PbqpEdge> edges;
};
struct PbqpSolution {
  std::vector<size_t> choice;  // by node
  double cost = 0;
  // false: a node with three or more neighbours was decided by the heuristic
  bool optimal = true;
};
// Nodes with none, one or two neighbours are folded into their neighbours exactly (R0, R1, R2);
// where only larger ones are left, the one with the most neighbours takes the alternative that is
// cheapest locally (RN). Deterministic.
PbqpSolution solve(const PbqpProblem& problem);

// Costs that differ by rounding are equal, and the first alternative is taken: so their unit, such
// as a clock, decides nothing.
inline bool costs_less(double a, double b) { return a < b * (1 - 1e-9); }

}  // namespace tw
