// before: %s = sqrt(const [4, 9])  %y = mul(%x, %s)
// after:  %y = mul(%x, const [2, 3])
// Reference evaluators compute the values. What folding adds to the model's bytes is charged to the
// context's budget; a reshaped constant shares its bytes. Nodes that need many multiply-accumulates
// stay, and so do those that make floats of bytes which a kernel widens. Why here: after
// canonicalize has turned transposed and expanded weights into flags and broadcasts, which cost
// nothing.
#include "ir/graph/externs.h"
#include "passes/passes.h"
#include "passes/quantization/keep_bytes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

constexpr int64_t kMaxMacs = int64_t{1} << 26;

// True if the node's value is known: its inputs are constants, or it gives the extents of a static
// shape. False for indices (iota), which are cheaper to make than to read.
bool is_known(const Graph& graph, const Node& node) {
  if (!regions_of(node.attrs).empty()) return false;  // regions may run long
  if (get_if<op::Iota>(&node)) return false;
  if (const op::DimVector* dims = get_if<op::DimVector>(&node))
    return static_shape(dims->values).has_value();
  if (std::holds_alternative<op::ShapeOf>(node.attrs))
    return static_shape(graph.value(node.inputs[0]).type.shape).has_value();
  if (const op::Extern* call = get_if<op::Extern>(&node);
      call && !extern_info(call->function).folds)
    return false;
  for (ValueId input : node.inputs)
    if (input.valid() && !graph.is_constant(input)) return false;
  return static_shape(dims_of(node.attrs)).has_value();
}

Expected<std::vector<Tensor>> compute(const Graph& graph, const Node& node) {
  if (std::holds_alternative<op::ShapeOf>(node.attrs)) {
    std::vector<int64_t> extents = *static_shape(graph.value(node.inputs[0]).type.shape);
    Tensor tensor = Tensor::zeros(DType::i64, {static_cast<int64_t>(extents.size())});
    for (size_t i = 0; i < extents.size(); ++i) tensor.set_int(static_cast<int64_t>(i), extents[i]);
    return std::vector<Tensor>{std::move(tensor)};
  }
  std::vector<Tensor> tensors(node.inputs.size());
  std::vector<const Tensor*> inputs(node.inputs.size(), nullptr);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    tensors[i] = graph.constant_tensor(node.inputs[i]);
    inputs[i] = &tensors[i];
  }
  std::vector<TensorType> types;
  for (ValueId output : node.outputs()) types.push_back(graph.value(output).type);
  return evaluate_node(node.attrs, types, inputs);
}

// The bytes that folding the node adds: its results', less those of constants that only it reads.
// nullopt if a shape is symbolic, even for an empty tensor.
std::optional<int64_t> growth(Rewriter& rewriter, const Node& node) {
  int64_t bytes = 0;
  for (ValueId output : node.outputs()) {
    const TensorType& type = rewriter.type(output);
    if (!static_shape(type.shape)) return std::nullopt;
    bytes += *as_const(element_count(type.shape)) * dtype_bytes(type.dtype);
  }
  for (ValueId input : node.inputs)
    if (input.valid() && rewriter.graph().is_constant(input) && rewriter.uses(input) == 1)
      bytes -= constant_bytes(rewriter.graph(), input);
  return bytes;
}

}  // namespace

Expected<bool> fold_constants(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  const std::set<NodeId> bytes = nodes_of_kept_bytes(graph, context);
  int folded = 0;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.erased || !all_plain(graph, node) ||
        std::holds_alternative<op::LayoutCast>(node.attrs))
      continue;
    if (bytes.contains(id) || !is_known(graph, node)) continue;
    const std::optional<int64_t> added = growth(rewriter, node);
    if (!added) continue;
    if (std::holds_alternative<op::Reshape>(node.attrs)) {
      rewriter.replace_by_constant(id, *graph.value(node.inputs[0]).constant);
      ++folded;
      continue;
    }
    if (*added > context.fold_budget_bytes || macs(graph, node) > kMaxMacs) continue;
    Expected<std::vector<Tensor>> result = compute(graph, node);
    // An index out of range or a division by zero is an error of the run, if the node ever runs.
    if (!result) {
      llvm::consumeError(result.takeError());
      continue;
    }
    if (*added > 0) context.fold_budget_bytes -= *added;
    rewriter.replace_by_constants(id, *result);
    ++folded;
  }
  context.report = llvm::formatv("{0} nodes folded", folded).str();
  return rewriter.changed();
}

}  // namespace tw
