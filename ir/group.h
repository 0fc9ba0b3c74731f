// Fused groups: the operators that one kernel computes, and by which algorithm.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tw {

// How the anchor of a group is computed. All but direct need fewer multiplications and round more
// (docs/internals/algorithms.md).
enum class Algorithm : uint8_t { direct, winograd_f2, winograd_f4, winograd_f6, strassen };
inline constexpr int kAlgorithmCount = 5;
const char* algorithm_name(Algorithm a);  // "direct", "winograd_f2", ..
std::optional<Algorithm> algorithm_from_name(std::string_view name);
// 2, 4 or 6; 0: another algorithm
int winograd_tile(Algorithm a);

// The result of fusion: the live nodes, partitioned; groups in a topological order, nodes inside a
// group too.
struct Group {
  std::vector<NodeId> nodes;
  // The complex_out or reduction node that the kernel is scheduled round; else the last node
  NodeId anchor;
  Algorithm algorithm = Algorithm::direct;  // of the anchor (passes/choose/choose_algorithms.h)
};
std::vector<Group> single_groups(const Graph& graph);  // a group a node, nothing fused
// a call of a library function or of regions: no kernel of its own
bool is_extern(const Graph& graph, const Group& group);
// Unary, binary, select, casts: output points read the same input points
bool is_elementwise(const Node& node);
// Of its nodes, "conv1+relu1": what its call is called
std::string group_name(const Graph& graph, const Group& group);
std::string print_groups(const Graph& graph, const std::vector<Group>& groups);

}  // namespace tw
