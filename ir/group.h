// Fused groups: the operators that one kernel computes, and the algorithm they use.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tw {

// The way a group's anchor is computed. All but `direct` need fewer multiplications and round more
// (docs/internals/algorithms.md).
enum class Algorithm : uint8_t { direct, winograd_f2, winograd_f4, winograd_f6, strassen };
inline constexpr int kAlgorithmCount = 5;
const char* algorithm_name(Algorithm a);  // "direct", "winograd_f2", ..
std::optional<Algorithm> algorithm_from_name(std::string_view name);
// 2, 4 or 6; 0: the algorithm is not Winograd
int winograd_tile(Algorithm a);

// Fusion partitions the live nodes of a graph into groups. The groups, and the nodes in each, are
// in topological order.
struct Group {
  std::vector<NodeId> nodes;
  // The complex_out or reduction node that the schedule is built around; otherwise the last node
  NodeId anchor;
  Algorithm algorithm = Algorithm::direct;  // the anchor's (passes/choose/choose_algorithms.h)
};
std::vector<Group> single_groups(const Graph& graph);  // one group for each node, nothing fused
// True: the group is a call of a library function or of regions, and has no kernel.
bool is_extern(const Graph& graph, const Group& group);
// Unary, binary, select and casts: each output point reads the same point of every input.
bool is_elementwise(const Node& node);
// The node names joined, "conv1+relu1". It names the call.
std::string group_name(const Graph& graph, const Group& group);
std::string print_groups(const Graph& graph, const std::vector<Group>& groups);

}  // namespace tw
