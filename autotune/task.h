// Tasks, the units of tuning: fused operators of a network, known by a key that is the same in
// every network that contains them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "kernels/lower.h"

namespace tw {

// One way to compute a task: an algorithm, and its lowered kernel for the target
struct Variant {
  Algorithm algorithm = Algorithm::direct;
  LoweredGroup lowered;
};

// Fused operators with shapes and dtypes, before the choice of an algorithm. A task is tuned once
// for all networks that contain it.
struct Task {
  // 16 hex digits: a hash of the canonical text, which has no names of values and nodes
  std::string key;
  // A name for people, from the first occurrence: "conv 64x56x56 -> 64x56x56 3x3 relu"
  std::string name;
  int64_t calls = 1;             // number of runs in the network
  double flops = 0;              // operations of the direct algorithm; symbols count as 1
  uint64_t weights_between = 0;  // weights_between() of its network, for measuring
  // The variants in use come first: the algorithms that choose_algorithms took, with one variant
  // for each set of layouts
  std::vector<Variant> variants;
  std::string text = {};  // print_task of the first occurrence; empty: not wanted or not possible
};
enum class TaskTexts : bool { no, yes };

// Makes a task for each distinct key, in the order of first use. `devices` has the device of each
// group (Placement::devices). Groups on other devices than 0 are left out, and so are groups
// without a kernel. Errors: an operator without a lowering.
Expected<std::vector<Task>> tasks_of(const Graph& graph, const std::vector<Group>& groups,
                                     const Target& target, std::span<const int> devices = {},
                                     TaskTexts texts = TaskTexts::no);

// Bytes of weights that pass through the caches between two runs of a group: the weights of its
// whole network, rounded up to a power of two from 1 MiB. 0: 64 MiB and more, or a group without
// weights. When a small network's weights stay in the last cache, other schedules and algorithms
// are best.
uint64_t weights_between(const Graph& graph, const Group& group);

// A hash of the operators with their attributes, the logical types of all values, the set of
// constants, and the values of constants with one element, which kernels contain. It includes
// weights_between if that is not 0. Names, layouts and the algorithm have no part in it; symbols
// count by position.
std::string task_key(const Graph& graph, const Group& group);
std::string task_key(const Graph& graph, const Group& group, uint64_t weights_between);
std::string task_name(const Graph& graph, const Group& group);
double flops_of(const Kernel& kernel);  // symbols count as 1

// Identifies one processor or device: triple, features, caches, intrinsics, vector bits. Name,
// budgets and accuracy have no part in it.
std::string target_key(const Target& target);

}  // namespace tw
