#include "passes/choose/pbqp.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>

using namespace tw;

namespace {

double cost_of(const PbqpProblem& problem, const std::vector<size_t>& choice) {
  double sum = 0;
  for (size_t n = 0; n < choice.size(); ++n) sum += problem.nodes[n][choice[n]];
  for (const PbqpEdge& edge : problem.edges) sum += edge.cost[choice[edge.a]][choice[edge.b]];
  return sum;
}

double brute_force(const PbqpProblem& problem) {
  std::vector<size_t> choice(problem.nodes.size());
  double best = std::numeric_limits<double>::infinity();
  for (;;) {
    best = std::min(best, cost_of(problem, choice));
    size_t n = 0;
    while (n < choice.size() && ++choice[n] == problem.nodes[n].size()) choice[n++] = 0;
    if (n == choice.size()) return best;
  }
}

PbqpProblem random_problem(std::mt19937& random, size_t nodes, double density, bool tree) {
  auto pick = [&](size_t count) { return random() % count; };
  PbqpProblem problem;
  for (size_t n = 0; n < nodes; ++n) {
    problem.nodes.emplace_back(1 + pick(3));
    for (double& cost : problem.nodes.back()) cost = static_cast<double>(pick(20));
  }
  auto connect = [&](size_t a, size_t b) {
    PbqpEdge edge{a, b, {}};
    for (size_t i = 0; i < problem.nodes[a].size(); ++i) {
      edge.cost.emplace_back();
      for (size_t j = 0; j < problem.nodes[b].size(); ++j)
        edge.cost.back().push_back(static_cast<double>(pick(20)));
    }
    problem.edges.push_back(edge);
  };
  for (size_t n = 1; n < nodes; ++n) {
    if (tree) connect(n, pick(n));
    for (size_t m = 0; m < n && !tree; ++m)
      if (static_cast<double>(pick(1000)) < density * 1000) connect(m, n);
  }
  return problem;
}

}  // namespace

TEST_CASE("pbqp: trees are solved exactly") {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    PbqpProblem problem = random_problem(random, 1 + random() % 8, 0, true);
    PbqpSolution solution = solve(problem);
    CHECK(solution.optimal);
    CHECK(solution.cost == cost_of(problem, solution.choice));
    CHECK(solution.cost == brute_force(problem));
  }
}

TEST_CASE("pbqp: claims of optimality hold on dense graphs, and the heuristic stays near") {
  std::mt19937 random(2);
  int heuristic = 0;
  double found = 0, best = 0;
  for (int i = 0; i < 300; ++i) {
    PbqpProblem problem = random_problem(random, 3 + random() % 6, 0.2 + 0.1 * (i % 6), false);
    PbqpSolution solution = solve(problem);
    double least = brute_force(problem);
    CHECK(solution.cost == cost_of(problem, solution.choice));
    if (solution.optimal) CHECK(solution.cost == least);
    else ++heuristic;
    found += solution.cost;
    best += least;
  }
  CHECK(heuristic > 20);
  CHECK(found < best * 1.1);
}

TEST_CASE("pbqp: impossible alternatives are avoided, parallel edges add up") {
  const double never = std::numeric_limits<double>::infinity();
  PbqpProblem problem{{{0, 1}, {0, 1}}, {{0, 1, {{never, 5}, {5, 5}}}, {1, 0, {{0, 0}, {9, 0}}}}};
  PbqpSolution solution = solve(problem);
  CHECK(solution.choice == std::vector<size_t>{1, 0});
  CHECK(solution.cost == 6);
}
