#include "passes/quantization/integer_form.h"

#include "ir/storage_types.h"

namespace tw {

ValueId IntegerForm::with(BinaryOp function, ValueId x, double other, const char* suffix) {
  const ValueId c = number(other, rewriter_.type(x).dtype, (std::string(suffix) + "_by").c_str());
  const bool bound = function == BinaryOp::max || function == BinaryOp::min;
  return add(op::Binary{function}, bound ? std::vector<ValueId>{c, x} : std::vector<ValueId>{x, c},
             suffix);
}

void IntegerForm::finish(ValueId rounded, const Range& range) {
  ValueId x = rounded;
  const auto apply = [&](BinaryOp function, int64_t value, const char* suffix) {
    x = with(function, x, static_cast<double>(value), suffix);
  };
  if (range.zero != 0) apply(BinaryOp::add, range.zero, "zero");
  if (range.low > lowest_of(range.to)) apply(BinaryOp::max, range.low, "low");
  if (range.high < highest_of(range.to)) apply(BinaryOp::min, range.high, "high");
  rewriter_.update(at_, op::Cast{range.to, true}, {x});
}

void drop_clamps(Rewriter& rewriter, NodeId id, const Quantization& to) {
  const Graph& graph = rewriter.graph();
  while (const std::optional<Clamp> c = constant_clamp(graph, graph.node(id).inputs[0])) {
    const int64_t bound = quantized_number(c->bound, to.scale[0], to.zero[0], to.type);
    if (bound != (c->function == BinaryOp::max ? lowest_of(to.type) : highest_of(to.type))) return;
    std::vector<ValueId> inputs = graph.node(id).inputs;
    inputs[0] = c->x;
    rewriter.update(id, OpAttrs(graph.node(id).attrs), inputs);
  }
}

}  // namespace tw
