// Fusion of pools with the convolutions in front of them, once the algorithms are known. A pool
// joins the group of the convolution that makes its input if
//   - its windows lie side by side: the stride is the kernel, no padding, no window beyond the
//     input. Each point of the convolution then belongs to one window at most, so nothing is
//     computed twice and no thread needs another's points;
//   - nobody else reads that input, and both are in the same blocks of channels;
//   - the convolution has no pool yet: a kernel takes the windows of one;
//   - the algorithm computes whole windows at once: Winograd's tiles are a multiple of them.
// The convolution's output is then never written: a tile of it makes a tile of the pool's.
#include <algorithm>

#include "ir/group.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

constexpr int64_t kMostPoints = 16;  // points of a window: one expression reads them all
constexpr size_t kMostNodes = 24;    // nodes of a group, as in fuse_groups.cpp

// True if the windows neither overlap nor leave the input. They need not cover its last rows and
// columns: the floor in the pool's extents drops these.
bool side_by_side(const op::Pool& pool, const TensorType& in, const TensorType& out) {
  int64_t points = 1;
  for (size_t i = 0; i < pool.kernel.size(); ++i) {
    const auto from = as_const(in.shape[i + 2]), to = as_const(out.shape[i + 2]);
    if (!from || !to || *to * pool.kernel[i] > *from) return false;
    if (pool.strides[i] != pool.kernel[i] || (pool.dilations[i] != 1 && pool.kernel[i] > 1))
      return false;
    points *= pool.kernel[i];
  }
  return points <= kMostPoints &&
         std::ranges::all_of(pool.pads, [](int64_t pad) { return pad == 0; });
}

// True if a pool may follow the group.
bool computes_windows(const Graph& graph, const Group& group, const op::Pool& pool) {
  return get_if<op::Conv>(&graph.node(group.anchor)) && serves_pool(group.algorithm, pool) &&
         std::ranges::none_of(
             group.nodes, [&](NodeId id) { return get_if<op::Pool>(&graph.node(id)) != nullptr; });
}

}  // namespace

void fuse_pools(const Graph& graph, std::vector<Group>& groups,
                const std::function<bool(const Group&)>& apart) {
  std::vector<int> uses(graph.value_count(), 0);
  std::vector<Group*> maker(graph.value_count(), nullptr);
  for (const Graph::Output& output : graph.outputs())
    ++uses[static_cast<size_t>(output.value.index)];
  for (const DataSymbol& symbol : graph.data_symbols)
    ++uses[static_cast<size_t>(symbol.value.index)];
  for (Group& group : groups) {
    if (!apart || !apart(group))
      maker[static_cast<size_t>(graph.node(group.nodes.back()).output.index)] = &group;
    for (NodeId id : group.nodes)
      for (ValueId v : graph.node(id).inputs)
        if (v.valid()) ++uses[static_cast<size_t>(v.index)];
  }
  for (Group& group : groups) {
    const Node& node = graph.node(group.anchor);
    const auto* pool = get_if<op::Pool>(&node);
    if (!pool || group.nodes.front() != group.anchor || (apart && apart(group))) continue;
    const auto in = static_cast<size_t>(node.inputs[0].index);
    const TensorType &from = graph.value(node.inputs[0]).type, &to = graph.value(node.output).type;
    Group* conv = maker[in];
    if (!conv || uses[in] != 1 || from.layout.plain() || !(from.layout == to.layout) ||
        !side_by_side(*pool, from, to))
      continue;
    if (!computes_windows(graph, *conv, *pool) ||
        conv->nodes.size() + group.nodes.size() > kMostNodes)
      continue;
    group.nodes.insert(group.nodes.begin(), conv->nodes.begin(), conv->nodes.end());
    group.anchor = conv->anchor;
    group.algorithm = conv->algorithm;
    conv->nodes.clear();
  }
  std::erase_if(groups, [](const Group& group) { return group.nodes.empty(); });
}

}  // namespace tw
