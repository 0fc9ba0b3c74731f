// before: %x: f32[8] = input  %y: f32[8] = mul(%x, const [0.1])
// after:  %x: f64[8] = input  %y: f64[8] = mul(%x, const [0.1 as an f32 holds it])
// Every float tensor, inputs, outputs and constants included, becomes f64: the same model with
// hardly any rounding. Only the operands of a quantize are f32, so that ties are those of the
// standard. No pipeline of the product has this pass; `tilewright verify` compares with its result.
#include <algorithm>
#include <set>

#include "ir/storage_types.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {

namespace {
// Small floats stay, as they are what quantization stores.
bool widens(DType t) { return is_float(t) && t != DType::f64 && !is_small_float(t); }

std::vector<NodeId> quantizers_of_f32(const Graph& graph) {
  std::vector<NodeId> found;
  for (const NodeId id : graph.order())
    if (get_if<op::Quantize>(&graph.node(id)) &&
        graph.value(graph.node(id).inputs[0]).type.dtype == DType::f32)
      found.push_back(id);
  return found;
}

// Operands that are f32 already: casts from f64 that only such nodes read.
std::set<ValueId> narrow_operands(const Graph& graph, const std::vector<NodeId>& quantizers) {
  const std::vector<std::vector<NodeId>> users = graph.users();
  std::set<ValueId> found;
  for (const NodeId id : quantizers)
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const ValueId v = graph.node(id).inputs[i];
      const Node* maker = graph.def(v);
      if (get_if<op::Cast>(maker) && graph.value(maker->inputs[0]).type.dtype == DType::f64 &&
          std::ranges::all_of(users[static_cast<size_t>(v.index)], [&](NodeId user) {
            return get_if<op::Quantize>(&graph.node(user)) != nullptr;
          }))
        found.insert(v);
    }
  return found;
}

void narrow(Rewriter& rewriter, NodeId id) {
  std::vector<ValueId> inputs = rewriter.node(id).inputs;
  for (const size_t i : {size_t{0}, size_t{1}})
    if (rewriter.type(inputs[i]).dtype == DType::f64)
      inputs[i] = rewriter.add(op::Cast{DType::f32}, {inputs[i]}, id, i == 0 ? "narrow" : "scale");
  if (inputs != rewriter.node(id).inputs)
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
  const std::set<ValueId> kept = narrow_operands(graph, quantizers);
  int values = 0;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const ValueId id{static_cast<int32_t>(i)};
    Value& value = graph.value(id);
    if (!widens(value.type.dtype) || kept.contains(id)) continue;
    if (value.constant) {
      auto wide = std::make_shared<const Tensor>(widened(graph.constant_tensor(id)));
      value.constant = Blob{wide, std::span<const std::byte>(wide->bytes)};
    }
    value.type.dtype = DType::f64;
    ++values;
  }
  for (const NodeId id : graph.order())
    if (auto* cast = std::get_if<op::Cast>(&graph.node(id).attrs);
        cast && widens(cast->to) && !kept.contains(graph.node(id).output))
      cast->to = DType::f64;
  Rewriter rewriter(graph);
  for (const NodeId id : quantizers) narrow(rewriter, id);
  context.report = llvm::formatv("{0} values widened", values).str();
  return values > 0;
}

}  // namespace tw
