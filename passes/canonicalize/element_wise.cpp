// Rules for unary and binary operators, select and cast.
#include <cmath>
#include <limits>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"
#include "passes/canonicalize/canonicalize.h"

namespace tw {
namespace {

// Rules that compute a new constant leave larger ones alone.
constexpr int64_t kMaxNewConstantBytes = 1 << 20;

enum class ConstantSide { left, right, either };

ConstantSide constant_side(BinaryOp function) {
  switch (function) {
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor: return ConstantSide::right;
    case BinaryOp::min:
    case BinaryOp::max: return ConstantSide::left;
    case BinaryOp::sub:
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::mod:
    case BinaryOp::pow:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::shl:
    case BinaryOp::shr: return ConstantSide::either;
  }
  TW_UNREACHABLE("bad binary operator");
}

bool order_operands(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Binary* binary = get_if<op::Binary>(&node);
  if (!binary) return false;
  bool left = rewriter.graph().is_constant(node.inputs[0]),
       right = rewriter.graph().is_constant(node.inputs[1]);
  ConstantSide side = constant_side(binary->function);
  if (left == right || side == ConstantSide::either || left == (side == ConstantSide::left))
    return false;
  rewriter.update(id, *binary, {node.inputs[1], node.inputs[0]});
  return true;
}

// True if x op c == x, with c on the side of the normal form.
bool is_neutral(BinaryOp function, double c, DType dtype) {
  double infinity = std::numeric_limits<double>::infinity();
  switch (function) {
    case BinaryOp::add:
    case BinaryOp::sub: return c == 0;
    case BinaryOp::mul:
    case BinaryOp::div:
    case BinaryOp::pow: return c == 1;
    case BinaryOp::floor_div: return c == 1 && !is_float(dtype);
    case BinaryOp::max: return c == -infinity;
    case BinaryOp::min: return c == infinity;
    case BinaryOp::logical_and: return c != 0;
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return c == 0;
    case BinaryOp::floor_mod:
    case BinaryOp::mod:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::bit_and: return false;
  }
  TW_UNREACHABLE("bad binary operator");
}

bool drop_identity(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Binary* binary = get_if<op::Binary>(&node);
  if (!binary) return false;
  bool left = constant_side(binary->function) == ConstantSide::left;
  ValueId x = node.inputs[left ? 1 : 0], c = node.inputs[left ? 0 : 1];
  if (rewriter.graph().is_constant(x) || !equal(rewriter.type(x), rewriter.type(node.output)))
    return false;
  std::optional<double> value = splat(rewriter.graph(), c);
  if (!value || !is_neutral(binary->function, *value, rewriter.type(x).dtype)) return false;
  rewriter.replace(id, x);
  return true;
}

bool is_rounding(UnaryOp f) {
  return f == UnaryOp::floor || f == UnaryOp::ceil || f == UnaryOp::round || f == UnaryOp::trunc;
}

// Merges neg(neg(x)), not(not(x)), a rounding of a rounding, abs(neg(x)) and abs(abs(x)).
bool merge_unary(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Unary* outer = get_if<op::Unary>(&node);
  if (!outer) return false;
  UnaryOp function = outer->function;
  ValueId x = node.inputs[0];
  const Node* maker = rewriter.graph().def(x);
  const op::Unary* inner = get_if<op::Unary>(maker);
  if (!inner) return false;
  ValueId source = maker->inputs[0];
  bool involution = function == UnaryOp::neg || function == UnaryOp::logical_not ||
                    function == UnaryOp::bit_not;
  if (involution && inner->function == function &&
      equal(rewriter.type(source), rewriter.type(node.output))) {
    rewriter.replace(id, source);
    return true;
  }
  if ((is_rounding(function) && is_rounding(inner->function)) ||
      (function == UnaryOp::abs && inner->function == UnaryOp::abs)) {
    rewriter.replace(id, x);
    return true;
  }
  if (function == UnaryOp::abs && inner->function == UnaryOp::neg) {
    rewriter.update(id, *outer, {source});
    return true;
  }
  return false;
}

// x + neg(y) -> x - y, neg(x) + y -> y - x, x - neg(y) -> x + y.
bool merge_negation(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  bool add = is_binary(&node, BinaryOp::add);
  if (!add && !is_binary(&node, BinaryOp::sub)) return false;
  for (size_t side : {size_t{1}, size_t{0}}) {
    const Node* maker = rewriter.graph().def(node.inputs[side]);
    if (!is_unary(maker, UnaryOp::neg) || (side == 0 && !add)) continue;
    rewriter.update(id, op::Binary{add ? BinaryOp::sub : BinaryOp::add},
                    {node.inputs[1 - side], maker->inputs[0]});
    return true;
  }
  return false;
}

// True if c in x op c is a constant that a rule may compute with.
bool has_small_constant(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  return graph.is_constant(node.inputs[1]) && !graph.is_constant(node.inputs[0]) &&
         constant_bytes(graph, node.inputs[1]) <= kMaxNewConstantBytes;
}

// x - c -> x + -c, which is exact for floats and for integers that wrap.
bool subtract_as_add(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (!is_binary(&node, BinaryOp::sub) || !has_small_constant(rewriter, node)) return false;
  DType dtype = rewriter.type(node.inputs[1]).dtype;
  if (!is_float(dtype) && !is_signed_int(dtype)) return false;
  Tensor c = rewriter.graph().constant_tensor(node.inputs[1]);
  for (int64_t i = 0; i < c.size(); ++i) {
    if (is_float(dtype)) c.set(i, -c.at(i));
    else c.set_int(i, static_cast<int64_t>(-static_cast<uint64_t>(c.int_at(i))));
  }
  ValueId x = node.inputs[0];
  rewriter.update(
      id, op::Binary{BinaryOp::add},
      {x, rewriter.add_constant(rewriter.graph().value(node.output).name + "_shift", c)});
  return true;
}

// x / c -> x * (1/c), if `inverse` gives an inverse of each element of c.
template <class Inverse>
bool multiply_instead(Rewriter& rewriter, NodeId id, Inverse inverse) {
  const Node& node = rewriter.node(id);
  if (!is_binary(&node, BinaryOp::div) || !has_small_constant(rewriter, node)) return false;
  const DType dtype = rewriter.type(node.inputs[1]).dtype;
  if (!is_float(dtype)) return false;
  Tensor c = rewriter.graph().constant_tensor(node.inputs[1]);
  for (int64_t i = 0; i < c.size(); ++i) {
    const std::optional<double> factor = inverse(dtype, c.at(i));
    if (!factor) return false;
    c.set(i, *factor);
  }
  const ValueId x = node.inputs[0];
  rewriter.update(
      id, op::Binary{BinaryOp::mul},
      {x, rewriter.add_constant(rewriter.graph().value(node.output).name + "_scale", c)});
  return true;
}

// Only powers of two have an exact inverse.
bool divide_as_multiply(Rewriter& rewriter, NodeId id) {
  return multiply_instead(rewriter, id, exact_inverse);
}

// Quotients that only a softmax reads, through sums and masks, become products by a rounded
// inverse. They are off by at most one ulp, as the exponential is anyway. In attention, each score
// would wait for a division.
bool divide_scores(Rewriter& rewriter, NodeId id) {
  constexpr size_t kMostNodes = 8;
  const auto rounded_inverse = [](DType type, double value) {
    const double inverse = round_to(type, 1 / value), least = std::numeric_limits<float>::min();
    const bool normal = std::abs(inverse) >= least && std::abs(inverse) <= 1 / least;
    return type == DType::f32 && normal ? std::optional<double>(inverse) : std::nullopt;
  };
  if (!get_if<op::Softmax>(&rewriter.node(id))) return false;
  std::vector<ValueId> open = {rewriter.node(id).inputs[0]};
  for (size_t i = 0; i < open.size() && i < kMostNodes; ++i) {
    const Node* maker = rewriter.graph().def(open[i]);
    if (!maker || rewriter.uses(open[i]) != 1) continue;
    if (multiply_instead(rewriter, rewriter.graph().value(open[i]).def, rounded_inverse))
      return true;
    if (is_binary(maker, BinaryOp::add) || is_binary(maker, BinaryOp::max) ||
        std::holds_alternative<op::Select>(maker->attrs))
      open.insert(open.end(), maker->inputs.begin(), maker->inputs.end());
  }
  return false;
}

// pow(x, 2) -> x * x, pow(x, 3) -> x * x * x.
bool power_as_products(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (!is_binary(&node, BinaryOp::pow)) return false;
  std::optional<double> exponent = splat(rewriter.graph(), node.inputs[1]);
  ValueId x = node.inputs[0];
  if (!exponent || (*exponent != 2 && *exponent != 3) ||
      !equal(rewriter.type(x), rewriter.type(node.output)))
    return false;
  // Two products round twice, which shows in short floats.
  if (*exponent == 3 && is_float(rewriter.type(x).dtype) && dtype_bytes(rewriter.type(x).dtype) < 4)
    return false;
  ValueId left = x;
  if (*exponent == 3) left = rewriter.add(op::Binary{BinaryOp::mul}, {x, x}, id, "square");
  rewriter.update(id, op::Binary{BinaryOp::mul}, {left, x});
  return true;
}

// max(c, max(d, x)) -> max(max(c, d), x), and the like for min.
bool merge_limits(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Binary* outer = get_if<op::Binary>(&node);
  if (!outer || constant_side(outer->function) != ConstantSide::left) return false;
  const Graph& graph = rewriter.graph();
  const Node* maker = graph.def(node.inputs[1]);
  if (!is_binary(maker, outer->function) || !graph.is_constant(node.inputs[0]) ||
      !graph.is_constant(maker->inputs[0]))
    return false;
  if (constant_bytes(graph, node.inputs[0]) + constant_bytes(graph, maker->inputs[0]) >
      kMaxNewConstantBytes)
    return false;
  Tensor c = graph.constant_tensor(node.inputs[0]), d = graph.constant_tensor(maker->inputs[0]);
  Expected<Tensor> limit = evaluate_op(*outer, {&c, &d});
  if (!limit) {
    llvm::consumeError(limit.takeError());
    return false;
  }
  ValueId x = maker->inputs[1];
  op::Binary function = *outer;
  rewriter.update(id, function,
                  {rewriter.add_constant(graph.value(node.output).name + "_limit", *limit), x});
  return true;
}

// True if `to` holds every value of `from`.
bool holds_all_values(DType from, DType to) {
  if (from == to) return true;
  if (to == DType::boolean || is_storage_only(to)) return false;
  if (from == DType::boolean) return true;
  int from_bits = dtype_bits(from), to_bits = dtype_bits(to);
  if (is_float(from)) return (to == DType::f32 && from_bits <= 16) || to == DType::f64;
  if (is_float(to))
    return (to == DType::f32 && from_bits <= 16) || (to == DType::f64 && from_bits <= 32);
  if (is_unsigned_int(from))
    return to_bits > from_bits || (to_bits == from_bits && is_unsigned_int(to));
  return is_signed_int(to) && to_bits >= from_bits;
}

// Drops a cast to the value's own type. cast(cast(x)) through a type that holds all values of x is
// one cast.
bool merge_casts(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Cast* outer = get_if<op::Cast>(&node);
  if (!outer) return false;
  ValueId x = node.inputs[0];
  if (rewriter.type(x).dtype == outer->to) {
    rewriter.replace(id, x);
    return true;
  }
  const Node* maker = rewriter.graph().def(x);
  const op::Cast* inner = get_if<op::Cast>(maker);
  if (!inner || !holds_all_values(rewriter.type(maker->inputs[0]).dtype, inner->to)) return false;
  rewriter.update(id, *outer, {maker->inputs[0]});
  return true;
}

bool simplify_select(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (!std::holds_alternative<op::Select>(node.attrs)) return false;
  ValueId condition = node.inputs[0], a = node.inputs[1], b = node.inputs[2];
  const TensorType out = rewriter.type(node.output);
  std::optional<double> known = splat(rewriter.graph(), condition);
  if (known || a == b) {
    ValueId chosen = known && *known == 0 ? b : a;
    if (equal(rewriter.type(chosen), out)) rewriter.replace(id, chosen);
    else rewriter.update(id, op::Expand{out.shape}, {chosen});
    return true;
  }
  const Node* maker = rewriter.graph().def(condition);
  if (!is_unary(maker, UnaryOp::logical_not)) return false;
  rewriter.update(id, op::Select{}, {maker->inputs[0], b, a});
  return true;
}

// Operators broadcast by themselves: add(expand(x), y) -> add(x, y), if the result's shape stays.
bool drop_expanded_operand(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (!std::holds_alternative<op::Binary>(node.attrs) &&
      !std::holds_alternative<op::Select>(node.attrs))
    return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Node* maker = rewriter.graph().def(node.inputs[i]);
    if (!get_if<op::Expand>(maker)) continue;
    std::vector<ValueId> inputs = node.inputs;
    inputs[i] = maker->inputs[0];
    std::vector<const TensorType*> types;
    for (ValueId input : inputs) types.push_back(&rewriter.type(input));
    Expected<std::vector<TensorType>> out = rewriter.graph().infer(node.attrs, types);
    if (!out) {
      llvm::consumeError(out.takeError());
      continue;
    }
    if (!equal((*out)[0], rewriter.type(node.output))) continue;
    rewriter.update(id, OpAttrs(node.attrs), inputs);
    return true;
  }
  return false;
}

}  // namespace

std::span<const Rule> element_wise_rules() {
  static constexpr Rule kRules[] = {
      {"order-operands", when_plain<order_operands>},
      {"drop-identity", drop_identity},
      {"merge-unary", merge_unary},
      {"merge-negation", merge_negation},
      {"subtract-as-add", subtract_as_add},
      {"divide-as-multiply", divide_as_multiply},
      {"divide-scores", divide_scores},
      {"power-as-products", power_as_products},
      {"merge-limits", when_plain<merge_limits>},
      {"merge-casts", merge_casts},
      {"simplify-select", when_plain<simplify_select>},
      {"drop-expanded-operand", when_plain<drop_expanded_operand>},
  };
  return kRules;
}

}  // namespace tw
