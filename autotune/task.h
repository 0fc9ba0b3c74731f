// What is tuned: fused operators of a network, known by a key that is the same in every network
// that contains them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "kernels/lower.h"

namespace tw {

// One way to compute a task: an algorithm, and what lowering makes of it for the target.
struct Variant {
  Algorithm algorithm = Algorithm::direct;
  LoweredGroup lowered;
};

// What is tuned once for all networks that contain it: fused operators with shapes and dtypes,
// before the algorithm is chosen.
struct Task {
  // 16 hex digits, hash of the canonical text: names of values and nodes do not matter
  std::string key;
  // For people: "conv 64x56x56 -> 64x56x56 3x3 relu", of the first occurrence
  std::string name;
  int64_t calls = 1;             // how often the network runs it
  double flops = 0;              // of the direct algorithm; symbols count as 1
  uint64_t weights_between = 0;  // weights_between() of its network, for the measuring
  // Those in use first (what choose_algorithms took; another one for each set of layouts it is used
  // with)
  std::vector<Variant> variants;
  std::string text = {};  // print_task of the first occurrence; empty: not asked for, or none
};
enum class TaskTexts : bool { no, yes };

// A task for each distinct key, in the order of first use. devices: where each group runs
// (Placement::devices); those that are not 0 are left out, and so are groups without a kernel.
// Errors: an operator without a lowering.
Expected<std::vector<Task>> tasks_of(const Graph& graph, const std::vector<Group>& groups,
                                     const Target& target, std::span<const int> devices = {},
                                     TaskTexts texts = TaskTexts::no);

// Bytes of weights that pass through the caches between two runs of a group: those of its whole
// network, in powers of two from 1 MiB. 0: 64 MiB and more, or the group has none. Where the
// weights of a small network stay in the last cache, other schedules and algorithms are the best.
uint64_t weights_between(const Graph& graph, const Group& group);

// Hash of the operators with their attributes, the logical types of all values, which of them are
// constants, and the values of constants of one element, which kernels contain. Of weights_between,
// if it is not 0. Names, layouts and the algorithm are no part of it; symbols count by their
// position.
std::string task_key(const Graph& graph, const Group& group);
std::string task_key(const Graph& graph, const Group& group, uint64_t weights_between);
std::string task_name(const Graph& graph, const Group& group);
double flops_of(const Kernel& kernel);  // symbols count as 1

// Of one processor or device: triple, features, caches, intrinsics, vector bits; not name, budgets,
// accuracy.
std::string target_key(const Target& target);

}  // namespace tw
