#include "kernels/attention/parts.h"

#include <numbers>

#include "ir/graph/queries.h"

namespace tw {

AttentionParts attention_parts(const GroupBuilder& b, const Node& product) {
  AttentionParts parts;
  parts.product = &product;
  for (NodeId id : b.group.nodes) {
    const Node& node = b.graph.node(id);
    if (get_if<op::Softmax>(&node)) parts.softmax = &node;
    if (get_if<op::MatMul>(&node) && node.output != product.output) parts.scores = &node;
    if (const auto* t = get_if<op::Transpose>(&node); t && node.inputs[0] == product.output)
      parts.perm = t->perm;
  }
  const Shape& s = b.type(parts.softmax->output).shape;
  parts.outer.assign(s.begin(), s.end() - 2);
  parts.rows = s[s.size() - 2], parts.keys = s.back();
  parts.depth = b.type(parts.scores->inputs[0]).shape.back();
  parts.columns = b.type(product.output).shape.back();
  return parts;
}

void define_by_places(GroupBuilder& b, const CausalMask& causal) {
  b.define(causal.mask, [mask = causal, dtype = b.type(causal.mask).dtype](const Index& at) {
    const Expr last = at[at.size() - 2] + Expr(mask.offset);
    if (dtype == DType::boolean) return mask.sees ? le(at.back(), last) : lt(last, at.back());
    return select(le(at.back(), last), imm(0, dtype), imm(mask.hidden, dtype));
  });
}

Expr in_f32(const Expr& e) {
  const DType type = e.type();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16) return cast(DType::f32, e);
  return match(
      e, [](const expr::Float& number) { return imm(number.value, DType::f32); },
      [](const expr::Unary& u) { return unary(u.op, in_f32(u.a)); },
      [](const expr::Binary& b) { return binary(b.op, in_f32(b.a), in_f32(b.b)); },
      [](const expr::Select& s) {
        return select(s.condition, in_f32(s.then), in_f32(s.otherwise));
      },
      [](const expr::Cast& c) { return in_f32(c.a); },
      [&](const auto&) { return type == DType::f32 ? e : cast(DType::f32, e); });
}

Expr rounded_to(DType dtype, const Expr& e) { return dtype == DType::f32 ? e : cast(dtype, e); }

Expr exponential(const Expr& difference) {
  return unary(UnaryOp::exp2, difference * imm(std::numbers::log2e, DType::f32));
}

Expr inverse_of_sum(const AttentionParts& parts, const Expr& sum) {
  const Expr one = imm(1, DType::f32);
  const bool masked = get_if<op::Softmax>(parts.softmax)->masked;
  return binary(BinaryOp::div, one, masked ? select(eq(sum, imm(0, DType::f32)), one, sum) : sum);
}

Index joined(Index index, const Index& more) {
  index.insert(index.end(), more.begin(), more.end());
  return index;
}

Index batch_index(const Shape& shape, const Index& row) {
  Index index;
  const size_t own = shape.size() - 2, all = row.size() - 1;
  for (size_t i = 0; i < own; ++i)
    index.push_back(is_const(shape[i], 1) ? Expr(0) : row[all - own + i]);
  return index;
}

AttentionOutput attention_output(GroupBuilder& b, const AttentionParts& parts,
                                 const Index& logical) {
  Index to;
  Shape shape;
  for (size_t i = 0; i < logical.size(); ++i) {
    const size_t from = parts.perm.empty() ? i : static_cast<size_t>(parts.perm[i]);
    to.push_back(logical[from]);
    shape.push_back(b.type(parts.product->output).shape[from]);
  }
  return {b.output(b.output_value(), shape), to};
}

}  // namespace tw
