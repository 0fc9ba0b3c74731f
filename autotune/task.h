// What auto-tuning works on: a task is a fused group of operators, with one variant for each algorithm that computes it.
#pragma once
#include <string>
#include <vector>

#include "passes/lower/lower.h"

namespace tw {

// One way to compute a task: an algorithm, and what lowering makes of it for the target.
struct Variant { Algorithm algorithm = Algorithm::direct; LoweredGroup lowered; };
// What is tuned once for all networks that contain it: fused operators with shapes and dtypes, before the algorithm is chosen.
struct Task {
  std::string key;                 // 16 hex digits, hash of the canonical text: names of values and nodes do not matter
  std::string name;                // for people: "conv 64x56x56 -> 64x56x56 3x3 relu", of the first occurrence
  int64_t calls = 1;               // how often the network runs it
  double flops = 0;                // of the direct algorithm
  std::vector<Variant> variants;   // the one in use first (what choose_algorithms took)
};
Expected<std::vector<Task>> tasks_of(const Graph& graph, const std::vector<Group>& groups, const Target& target);
std::string task_key(const Graph& graph, const Group& group);
std::string target_key(const Target& target);   // triple, features, caches, intrinsics, vector bits; not name, budgets, accuracy

}  // namespace tw
