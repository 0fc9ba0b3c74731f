// Graph passes: one function each, listed in one table; a pipeline is data. Hooks (verify, print, time, limit) are the runner's.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/cost.h"

namespace tw {

struct PassContext {
  const Target& target;
  int64_t fold_budget_bytes = 64 << 20;   // constant folding may add so much in all
  std::string report{};                     // a line a pass may leave for --time-passes and --stats
  const CostOracle* costs = nullptr;        // what choices cost; null: the analytic model
};

struct Pass {
  const char* name;      // "fold-constants": file, function, flag and test carry the same words
  const char* summary;
  Expected<bool> (*run)(Graph&, PassContext&);   // true: something changed
};
const std::vector<Pass>& all_passes();               // passes/all_passes.cpp
const Pass* find_pass(std::string_view name);
std::vector<std::string> default_pipeline();          // passes/pipelines.cpp

struct RunOptions {
  bool verify_each = false;
  int limit = -1;                                     // stop after so many passes (bisecting)
  std::vector<std::string> print_after;               // names, or "all"
  bool print_changed = false;
  std::function<void(const std::string& title, const std::string& text)> print;            // where printed graphs go
  std::function<void(const std::string& pass, double seconds, bool changed, const std::string& report)> on_pass;
};
// The graphs inside of nodes first, the innermost before those around them.
Error run_passes(Graph& graph, PassContext& context, const std::vector<std::string>& pipeline, const RunOptions& options = {});

// How the anchor of a group is computed. All but direct need fewer multiplications and round more (docs/algorithms.md).
enum class Algorithm : uint8_t { direct, winograd_f2, winograd_f4, winograd_f6, strassen };
inline constexpr int kAlgorithmCount = 5;
const char* algorithm_name(Algorithm a);                              // "direct", "winograd_f2", ..
std::optional<Algorithm> algorithm_from_name(std::string_view name);
int winograd_tile(Algorithm a);                                       // 2, 4 or 6; 0: another algorithm

// The result of fusion: the live nodes, partitioned; groups in a topological order, nodes inside a group too.
struct Group {
  std::vector<NodeId> nodes;
  NodeId anchor;                 // the complex_out or reduction node that the kernel is scheduled round; else the last node
  Algorithm algorithm = Algorithm::direct;   // of the anchor (passes/choose_algorithms.h)
};
// Every group has one value that is read outside or is an output of the graph: its last node's. The others are internal. A node of several
// outputs is alone. half_attention: attention of f16 and bf16 is one kernel too, in f32 inside; devices multiply such matrices faster apart.
std::vector<Group> fuse_groups(const Graph& graph, bool half_attention = true);   // passes/fuse_groups.cpp
// Pools join the groups of the convolutions in front of them. After the choice of algorithms.
void fuse_pools(const Graph& graph, std::vector<Group>& groups);   // passes/fuse_pools.cpp
std::vector<Group> single_groups(const Graph& graph); // a group a node, nothing fused
bool is_extern(const Graph& graph, const Group& group);   // a call of a library function or of regions: no kernel of its own
bool is_elementwise(const Node& node);                // unary, binary, select, casts: output points read the same input points
std::string print_groups(const Graph& graph, const std::vector<Group>& groups);

}  // namespace tw
