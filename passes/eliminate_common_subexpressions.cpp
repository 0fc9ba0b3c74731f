// before: %a = exp(%x)  %b = exp(%x)  %c = add(%a, %b)
// after:  %a = exp(%x)  %c = add(%a, %a)
// Constants with equal content become one as well. Among equal nodes, the first in topological
// order stays. Why here: passes that fold into a producer with one user must see duplicates as one.
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

// Leaves out min and max: the order of their operands decides the result for a NaN.
bool is_commutative(const Node& node) {
  const op::Binary* binary = get_if<op::Binary>(&node);
  if (!binary) return false;
  switch (binary->function) {
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor: return true;
    case BinaryOp::sub:
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::mod:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::pow:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::shl:
    case BinaryOp::shr: return false;
  }
  TW_UNREACHABLE("bad binary operator");
}

// Candidates agree in type, size and both ends of their bytes; only they are compared in full.
bool merge_constants(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  std::map<std::tuple<std::string, size_t, std::string>, std::vector<ValueId>> seen;
  bool changed = false;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    ValueId id{static_cast<int32_t>(i)};
    if (!graph.is_constant(id) || rewriter.uses(id) == 0) continue;
    std::span<const std::byte> bytes = graph.value(id).constant->bytes;
    const char* data = reinterpret_cast<const char*>(bytes.data());
    size_t end = std::min<size_t>(bytes.size(), 64);
    std::string ends = std::string(data, end) + std::string(data + bytes.size() - end, end);
    std::vector<ValueId>& same =
        seen[{to_string(graph.value(id).type), bytes.size(), std::move(ends)}];
    auto twin = std::find_if(same.begin(), same.end(), [&](ValueId other) {
      const std::byte* others = graph.value(other).constant->bytes.data();
      return bytes.empty() || others == bytes.data() ||
             std::memcmp(others, data, bytes.size()) == 0;
    });
    if (twin == same.end()) {
      same.push_back(id);
      continue;
    }
    graph.replace_uses(id, *twin);
    changed = true;
  }
  return changed;
}

}  // namespace

Expected<bool> eliminate_common_subexpressions(Graph& graph, PassContext&) {
  Rewriter constants(graph);
  bool changed = merge_constants(constants);
  Rewriter rewriter(graph);
  std::map<std::tuple<size_t, std::vector<ValueId>, std::string>, std::vector<NodeId>> seen;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.erased || has_several_outputs(node.attrs)) continue;
    std::vector<ValueId> inputs = node.inputs;
    if (is_commutative(node)) std::sort(inputs.begin(), inputs.end());
    std::vector<NodeId>& same =
        seen[{node.attrs.index(), std::move(inputs), print_attrs(node.attrs)}];
    auto twin = std::find_if(same.begin(), same.end(), [&](NodeId other) {
      const Node& first = graph.node(other);
      return !first.erased && equal(first.attrs, node.attrs) &&
             equal(graph.value(first.output).type, graph.value(node.output).type);
    });
    if (twin == same.end()) same.push_back(id);
    else rewriter.replace(id, graph.node(*twin).output);
  }
  return changed || rewriter.changed();
}

}  // namespace tw
