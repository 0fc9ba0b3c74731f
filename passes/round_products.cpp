// Products in tiles of a device multiply numbers rounded to tf32 if the target's precision says so.
// before: %y: f32 = matmul(%x, %w)
// after:  %xr: f32 = unary(%x) function=tf32  %wr: f32 = unary(%w) function=tf32
//         %y: f32 = matmul(%xr, %wr)
// The roundings share the product's kernel, which reads f32 from memory. Products that are too
// small for tiles stay exact, as no instruction would multiply them. Why here: after constants are
// folded, which would leave only the rounded weights; before layouts.
#include "kernels/device/tiles.h"
#include "passes/passes.h"
#include "passes/precision.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

bool rounds(const Graph& graph, const Node& node, const Target& device) {
  if (!get_if<op::Conv>(&node) && !get_if<op::MatMul>(&node)) return false;
  const auto problem = tile_problem_of(graph, node, true);
  return problem && problem->operands.type == DType::f32 && block_tile(device, *problem);
}

int64_t weight_bytes(const Graph& graph, const Node& node) {
  const ValueId weights = node.inputs[1];
  return graph.is_constant(weights) ? 4 * graph.constant_tensor(weights).size() : 0;
}

}  // namespace

Expected<bool> round_products(Graph& graph, PassContext& context) {
  if (precision_of(context.target) != Precision::tf32) return false;
  Rewriter rewriter(graph);
  int count = 0;
  for (const NodeId id : graph.order()) {
    const std::string name = graph.value(graph.node(id).output).name;
    if (context.exact.contains(name) ||
        !rounds(graph, graph.node(id), context.target.main_device()))
      continue;
    const int64_t bytes = weight_bytes(graph, graph.node(id));
    std::vector<ValueId> inputs = graph.node(id).inputs;
    for (size_t i = 0; i < 2; ++i)
      inputs[i] = rewriter.add(op::Unary{UnaryOp::tf32}, {inputs[i]}, id, i == 0 ? "x" : "w");
    rewriter.update(id, graph.node(id).attrs, inputs);
    context.narrowed[name] = {"tf32", bytes, bytes};
    ++count;
  }
  context.report = llvm::formatv("{0} layers of tf32", count).str();
  return count > 0;
}

}  // namespace tw
