// Scholz and Eckstein's reductions (LCTES 2002). Nodes go onto a stack as they are folded away, and
// are decided in reverse order.
#include "passes/choose/pbqp.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "support/diag.h"

namespace tw {
namespace {

using Matrix = std::vector<std::vector<double>>;

class Solver {
 public:
  explicit Solver(const PbqpProblem& problem)
      : problem_(problem),
        costs_(problem.nodes),
        near_(problem.nodes.size()),
        degree_(problem.nodes.size()) {
    for (size_t n = 0; n < near_.size(); ++n) by_degree_.emplace(0, n);
    for (const PbqpEdge& edge : problem.edges) {
      TW_CHECK(edge.a != edge.b, "an edge from a node to itself");
      add(edge.a, edge.b, edge.cost);
    }
  }

  PbqpSolution run() {
    PbqpSolution solution;
    solution.choice.resize(costs_.size());
    while (std::optional<size_t> node = next()) {
      if (near_[*node].size() > 2) solution.optimal = false;
      reduce(*node);
    }
    for (auto step = stack_.rbegin(); step != stack_.rend(); ++step) decide(*step, solution.choice);
    solution.cost = total(solution.choice);
    return solution;
  }

 private:
  // A node that has been folded away, with its costs and edges at that time.
  struct Step {
    size_t node;
    std::vector<double> costs;
    std::map<size_t, Matrix> edges;  // neighbour -> [own alternative][neighbour's]
  };

  void add(size_t a, size_t b, const Matrix& cost) {
    auto [ab, fresh] = near_[a].try_emplace(
        b, Matrix(costs_[a].size(), std::vector<double>(costs_[b].size())));
    Matrix& ba = near_[b]
                     .try_emplace(a,
                                  Matrix(costs_[b].size(), std::vector<double>(costs_[a].size())))
                     .first->second;
    for (size_t i = 0; i < costs_[a].size(); ++i)
      for (size_t j = 0; j < costs_[b].size(); ++j) {
        ab->second[i][j] += cost[i][j];
        ba[j][i] += cost[i][j];
      }
    set_degree(a, near_[a].size());
    set_degree(b, near_[b].size());
  }

  // The node with the fewest neighbours if these are at most two, else the node with the most.
  // Among equals, the first.
  std::optional<size_t> next() const {
    if (by_degree_.empty()) return std::nullopt;
    const auto [fewest, first] = *by_degree_.begin();
    return fewest <= 2 ? first : by_degree_.lower_bound({by_degree_.rbegin()->first, 0})->second;
  }

  void set_degree(size_t node, size_t degree) {
    by_degree_.erase({degree_[node], node});
    degree_[node] = degree;
    by_degree_.emplace(degree, node);
  }

  void reduce(size_t node) {
    std::map<size_t, Matrix> edges = std::move(near_[node]);
    if (edges.size() > 2) fix(node, edges);
    std::vector<size_t> ends;
    for (const auto& [other, cost] : edges) {
      ends.push_back(other);
      near_[other].erase(node);
      set_degree(other, near_[other].size());
    }
    by_degree_.erase({degree_[node], node});
    const std::vector<double>& own = costs_[node];
    if (edges.size() == 1) {
      for (size_t j = 0; j < costs_[ends[0]].size(); ++j)
        costs_[ends[0]][j] += cheapest(own, {&edges[ends[0]]}, {j}).second;
    } else if (edges.size() == 2) {
      Matrix folded(costs_[ends[0]].size(), std::vector<double>(costs_[ends[1]].size()));
      for (size_t j = 0; j < folded.size(); ++j)
        for (size_t k = 0; k < folded[j].size(); ++k)
          folded[j][k] = cheapest(own, {&edges[ends[0]], &edges[ends[1]]}, {j, k}).second;
      add(ends[0], ends[1], folded);
    } else {
      size_t chosen = static_cast<size_t>(std::min_element(own.begin(), own.end()) - own.begin());
      for (const auto& [other, cost] : edges)  // no edges if the node stood alone
        for (size_t j = 0; j < costs_[other].size(); ++j) costs_[other][j] += cost[chosen][j];
    }
    stack_.push_back({node, own, std::move(edges)});
  }

  // RN: leaves only the alternative that is cheapest if every neighbour takes its best one for it.
  void fix(size_t node, const std::map<size_t, Matrix>& edges) {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < costs_[node].size(); ++i) {
      double sum = costs_[node][i];
      for (const auto& [other, cost] : edges) sum += cheapest_with(cost[i], costs_[other]);
      if (costs_less(sum, least)) least = sum, best = i;
    }
    for (size_t i = 0; i < costs_[node].size(); ++i)
      if (i != best) costs_[node][i] = std::numeric_limits<double>::infinity();
  }

  static double cheapest_with(const std::vector<double>& edge, const std::vector<double>& costs) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < costs.size(); ++j) least = std::min(least, edge[j] + costs[j]);
    return least;
  }

  // The best alternative, and its cost, given the neighbours' alternatives `at`.
  static std::pair<size_t, double> cheapest(const std::vector<double>& own,
                                            const std::vector<const Matrix*>& edges,
                                            const std::vector<size_t>& at) {
    std::pair<size_t, double> best{0, std::numeric_limits<double>::infinity()};
    for (size_t i = 0; i < own.size(); ++i) {
      double sum = own[i];
      for (size_t e = 0; e < edges.size(); ++e) sum += (*edges[e])[i][at[e]];
      if (costs_less(sum, best.second)) best = {i, sum};
    }
    return best;
  }

  static void decide(const Step& step, std::vector<size_t>& choice) {
    std::vector<const Matrix*> edges;
    std::vector<size_t> at;
    for (const auto& [other, cost] : step.edges) {
      edges.push_back(&cost);
      at.push_back(choice[other]);
    }
    choice[step.node] = cheapest(step.costs, edges, at).first;
  }

  double total(const std::vector<size_t>& choice) const {
    double sum = 0;
    for (size_t n = 0; n < choice.size(); ++n) sum += problem_.nodes[n][choice[n]];
    for (const PbqpEdge& edge : problem_.edges) sum += edge.cost[choice[edge.a]][choice[edge.b]];
    return sum;
  }

  const PbqpProblem& problem_;
  std::vector<std::vector<double>> costs_;
  // By node: neighbour -> [own alternative][neighbour's]
  std::vector<std::map<size_t, Matrix>> near_;
  std::vector<size_t> degree_;  // by node: its degree in by_degree_
  // Pairs of the number of neighbours and the node, for nodes that are not decided yet
  std::set<std::pair<size_t, size_t>> by_degree_;
  std::vector<Step> stack_;
};

}  // namespace

PbqpSolution solve(const PbqpProblem& problem) { return Solver(problem).run(); }

}  // namespace tw
