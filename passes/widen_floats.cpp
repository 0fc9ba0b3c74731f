// before: %x: f32[8] = input  %y: f32[8] = mul(%x, const [0.1])
// after:  %x: f64[8] = input  %y: f64[8] = mul(%x, const [0.1 as an f32 holds it])
// Every float tensor, inputs, outputs and constants included, becomes f64: the same model without
// rounding to speak of. Only what a quantize divides and rounds is f32 first: ties are those of the
// standard. In no pipeline of the product; `tilewright verify` compares with it.
#include "ir/storage_types.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {

namespace {
// Small floats are what quantization means
bool widens(DType t) { return is_float(t) && t != DType::f64 && !is_small_float(t); }

std::vector<NodeId> quantizers_of_f32(const Graph& graph) {
  std::vector<NodeId> found;
  for (const NodeId id : graph.order())
    if (get_if<op::Quantize>(&graph.node(id)) &&
        graph.value(graph.node(id).inputs[0]).type.dtype == DType::f32)
      found.push_back(id);
  return found;
}

void narrow_operands(Rewriter& rewriter, NodeId id) {
  std::vector<ValueId> inputs = rewriter.node(id).inputs;
  inputs[0] = rewriter.add(op::Cast{DType::f32}, {inputs[0]}, id, "narrow");
  inputs[1] = rewriter.add(op::Cast{DType::f32}, {inputs[1]}, id, "scale");
  rewriter.update(id, OpAttrs(rewriter.node(id).attrs), inputs);
}
}  // namespace

Tensor widened(const Tensor& tensor) {
  if (!widens(tensor.dtype)) return tensor;
  Tensor wide = Tensor::zeros(DType::f64, tensor.shape);
  const std::span<double> out = wide.as<double>();
  for (int64_t i = 0; i < tensor.size(); ++i) out[static_cast<size_t>(i)] = tensor.at(i);
  return wide;
}

Expected<bool> widen_floats(Graph& graph, PassContext& context) {
  const std::vector<NodeId> quantizers = quantizers_of_f32(graph);
  int values = 0;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const ValueId id{static_cast<int32_t>(i)};
    Value& value = graph.value(id);
    if (!widens(value.type.dtype)) continue;
    if (value.constant) {
      auto wide = std::make_shared<const Tensor>(widened(graph.constant_tensor(id)));
      value.constant = Blob{wide, std::span<const std::byte>(wide->bytes)};
    }
    value.type.dtype = DType::f64;
    ++values;
  }
  for (const NodeId id : graph.order())
    if (auto* cast = std::get_if<op::Cast>(&graph.node(id).attrs); cast && widens(cast->to))
      cast->to = DType::f64;
  Rewriter rewriter(graph);
  for (const NodeId id : quantizers) narrow_operands(rewriter, id);
  context.report = llvm::formatv("{0} values widened", values).str();
  return values > 0;
}

}  // namespace tw
