// before: %s = sqrt(const [4, 9])  %y = mul(%x, %s)
// after:  %y = mul(%x, const [2, 3])
// Reference evaluators compute the values. What folding adds to the model's bytes is charged to the context's budget; a
// reshaped constant shares its bytes. Nodes that need many multiply-accumulates stay.
// Why here: after canonicalize has turned transposed and expanded weights into flags and broadcasts, which cost nothing.
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

constexpr int64_t kMaxMacs = int64_t{1} << 26;

bool inputs_are_constant(const Graph& graph, const Node& node) {
  for (ValueId input : node.inputs)
    if (input.valid() && !graph.is_constant(input)) return false;
  return true;
}

Expected<Tensor> compute(const Graph& graph, const Node& node) {
  std::vector<Tensor> tensors(node.inputs.size());
  std::vector<const Tensor*> inputs(node.inputs.size(), nullptr);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    tensors[i] = graph.constant_tensor(node.inputs[i]);
    inputs[i] = &tensors[i];
  }
  return op_info(node.attrs).evaluate(node.attrs, graph.value(node.output).type, inputs);
}

// Bytes that the result adds: its own less those of the constants that nobody else reads.
int64_t growth(Rewriter& rewriter, const Node& node, const std::vector<int64_t>& shape) {
  int64_t bytes = element_count(std::span<const int64_t>(shape)) * dtype_bytes(rewriter.type(node.output).dtype);
  for (ValueId input : node.inputs)
    if (input.valid() && rewriter.uses(input) == 1) bytes -= constant_bytes(rewriter.graph(), input);
  return bytes;
}

}  // namespace

Expected<bool> fold_constants(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  int folded = 0;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.erased || !all_plain(graph, node) || std::holds_alternative<op::LayoutCast>(node.attrs)) continue;
    if (!inputs_are_constant(graph, node)) continue;
    std::optional<std::vector<int64_t>> shape = static_shape(graph.value(node.output).type.shape);
    if (!shape) continue;
    if (const op::DimVector* dims = get_if<op::DimVector>(&node); dims && !static_shape(dims->values)) continue;
    if (std::holds_alternative<op::Reshape>(node.attrs)) {
      rewriter.replace_by_constant(id, *graph.value(node.inputs[0]).constant);
      ++folded;
      continue;
    }
    int64_t added = growth(rewriter, node, *shape);
    if (added > context.fold_budget_bytes || macs(graph, node) > kMaxMacs) continue;
    TW_ASSIGN(Tensor result, compute(graph, node));
    if (added > 0) context.fold_budget_bytes -= added;
    rewriter.replace_by_constant(id, result);
    ++folded;
  }
  context.report = llvm::formatv("{0} nodes folded", folded).str();
  return rewriter.changed();
}

}  // namespace tw
