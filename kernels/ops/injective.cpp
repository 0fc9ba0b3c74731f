// Elements of injective operators, which are element-wise arithmetic and data movement, as index
// expressions over their inputs.
#include <algorithm>
#include <cmath>

#include "ir/graph/ops/resize.h"
#include "ir/scalar_ops.h"
#include "ir/storage_types.h"
#include "kernels/common/group_builder.h"

namespace tw {

Index broadcast_index(const Shape& operand, const Index& result) {
  Index index;
  size_t offset = result.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i)
    index.push_back(is_const(operand[i], 1) ? Expr(0) : result[offset + i]);
  return index;
}

Expr flatten_index(const Shape& shape, const Index& index) {
  Expr flat(0);
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

Index unflatten_index(const Shape& shape, const Expr& flat) {
  Index index(shape.size(), Expr(0));
  const auto first = static_cast<size_t>(
      std::ranges::find_if(shape, [](const Expr& e) { return !is_const(e, 1); }) - shape.begin());
  Expr rest = flat;
  // The first axis with an extent other than 1 gets the rest of the index. It needs no modulo, so
  // nobody has to prove that the rest is in range.
  for (size_t i = shape.size(); i-- > first;) {
    index[i] = i > first ? floor_mod(rest, shape[i]) : rest;
    rest = floor_div(rest, shape[i]);
  }
  return index;
}

Expr divide(const Expr& x, const Expr& count) {
  const DType type = x.type();
  const Expr divisor = count.type() == type ? count : cast(type, count);
  std::optional<double> known;
  if (const auto* number = as<expr::Float>(divisor)) known = number->value;
  if (is_float(type) && count.type() == DType::i64)
    if (const auto fixed = as_const(count)) known = static_cast<double>(*fixed);
  const std::optional<double> inverse = known ? exact_inverse(type, *known) : std::nullopt;
  if (inverse) return x * imm(*inverse, type);
  return binary(BinaryOp::div, x, known ? imm(*known, type) : divisor);
}

namespace {

// Short floats are computed in f32. The result of each operator of the model is rounded to its
// type, whether or not the next operator is in the same kernel. Results within an operator that was
// imported as several nodes, which share its name, are not rounded.
Expr in_f32(const Expr& x) {
  const DType type = accumulator_type(x.type());
  if (x.type() == type) return x;
  const auto* number = as<expr::Float>(x);
  return number ? imm(number->value, type) : cast(type, x);
}
Expr rounded(const Expr& x, DType type) { return x.type() == type ? x : cast(type, x); }

// True: for an operand that is a number of the type, the result is one too.
bool stays_in_type(UnaryOp f) {
  switch (f) {
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::round:
    case UnaryOp::trunc:
    case UnaryOp::sign:
    case UnaryOp::is_nan:
    case UnaryOp::is_inf:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not: return true;
    case UnaryOp::exp:
    case UnaryOp::exp2:
    case UnaryOp::expm1:
    case UnaryOp::log:
    case UnaryOp::log1p:
    case UnaryOp::sqrt:
    case UnaryOp::rsqrt:
    case UnaryOp::tanh:
    case UnaryOp::erf:
    case UnaryOp::normal_cdf:
    case UnaryOp::sigmoid:
    case UnaryOp::sin:
    case UnaryOp::cos:
    case UnaryOp::tan:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atan:
    case UnaryOp::tf32: return false;
  }
  TW_UNREACHABLE("bad unary operator");
}
bool stays_in_type(BinaryOp f) {
  switch (f) {
    case BinaryOp::mod:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return true;
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::pow: return false;
  }
  TW_UNREACHABLE("bad binary operator");
}

bool is_rounded(const GroupBuilder& b, const Node& node) {
  const DType type = b.type(node.output).dtype;
  if (accumulator_type(type) == type) return false;
  return std::ranges::any_of(b.group.nodes, [&](NodeId id) {
    const Node& reader = b.graph.node(id);
    return reader.name != node.name && std::ranges::count(reader.inputs, node.output) > 0;
  });
}

Expr element_of(GroupBuilder& b, const op::Binary& attrs, const Node& node, const Index& index) {
  Expr left = b.element(node.inputs[0], broadcast_index(b.type(node.inputs[0]).shape, index));
  Expr right = b.element(node.inputs[1], broadcast_index(b.type(node.inputs[1]).shape, index));
  if (!stays_in_type(attrs.function) && is_rounded(b, node)) {
    const DType type = left.type();
    left = in_f32(left), right = in_f32(right);
    return rounded(
        attrs.function == BinaryOp::div ? divide(left, right) : binary(attrs.function, left, right),
        type);
  }
  if (attrs.function == BinaryOp::div) return divide(left, right);
  // Clip and relu keep a NaN of their tensor operand, so the tensor comes second (ir/expr.h).
  if ((attrs.function == BinaryOp::max || attrs.function == BinaryOp::min) &&
      is<expr::Float>(right))
    return binary(attrs.function, right, left);
  return binary(attrs.function, left, right);
}

// Scale (input 1) or zero point (input 2) at a point of the quantized tensor; undefined: absent
Expr quantization_parameter(GroupBuilder& b, const Node& node, size_t input, int64_t axis,
                            const Index& index) {
  if (input >= node.inputs.size() || !node.inputs[input].valid()) return {};
  const ValueId v = node.inputs[input];
  const Shape& shape = b.type(v).shape;
  if (is_const(element_count(shape), 1)) return b.element(v, Index(shape.size(), Expr(0)));
  return b.element(
      v, {index[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(index.size()) : axis)]});
}

Expr element_of(GroupBuilder& b, const op::Quantize& attrs, const Node& node, const Index& index) {
  const Expr x = b.element(node.inputs[0], index),
             zero = quantization_parameter(b, node, 2, attrs.axis, index);
  const Expr rounded = unary(
      UnaryOp::round,
      binary(BinaryOp::div, x, quantization_parameter(b, node, 1, attrs.axis, index)));
  return cast(attrs.to,
              zero.defined() && !is_const(zero, 0) ? rounded + cast(x.type(), zero) : rounded,
              true);
}

Expr element_of(GroupBuilder& b, const op::Dequantize& attrs, const Node& node,
                const Index& index) {
  const Expr wide = b.element(node.inputs[0], index),
             x = wide.type() == DType::i32 ? wide : cast(DType::i32, wide);
  const Expr zero = quantization_parameter(b, node, 2, attrs.axis, index),
             scale = quantization_parameter(b, node, 1, attrs.axis, index);
  const Expr shifted = !zero.defined() || is_const(zero, 0)
                           ? x
                           : x - (zero.type() == DType::i32 ? zero : cast(DType::i32, zero));
  return cast(scale.type(), shifted) * scale;
}

Expr element_of(GroupBuilder& b, const op::Lookup&, const Node& node, const Index& index) {
  const Expr x = b.element(node.inputs[0], index);
  const Expr at = cast(DType::i64, x) - Expr(lowest_of(x.type()));
  return b.element(node.inputs[1], {at});
}

Expr element_of(GroupBuilder& b, const op::Concat& attrs, const Node& node, const Index& index) {
  auto axis = static_cast<size_t>(attrs.axis);
  Expr start(0), result;
  std::vector<Expr> starts;
  for (ValueId input : node.inputs) {
    starts.push_back(start);
    start = start + b.type(input).shape[axis];
  }
  for (size_t i = node.inputs.size(); i-- > 0;) {
    Index inner = index;
    inner[axis] = b.simplified(index[axis] - starts[i]);
    Expr element = b.element(node.inputs[i], inner);
    Expr end = b.simplified(starts[i] + b.type(node.inputs[i]).shape[axis]);
    result = result.defined() ? select(lt(index[axis], end), element, result) : element;
  }
  return result;
}

// Indices are wrapped (negative ones count from the end) and clamped. A bad index never reads
// outside the tensor, even if nothing has checked it (ir/graph/index_checks.h).
Expr element_of(GroupBuilder& b, const op::Gather& attrs, const Node& node, const Index& index) {
  const Shape& data = b.type(node.inputs[0]).shape;
  const Shape& indices = b.type(node.inputs[1]).shape;
  auto axis = static_cast<size_t>(attrs.axis);
  Index where(index.begin() + attrs.axis,
              index.begin() + attrs.axis + static_cast<int64_t>(indices.size()));
  Expr i = b.element(node.inputs[1], where);
  if (i.type() != DType::i64) i = cast(DType::i64, i);
  const auto known = as_const(i);
  const Expr wrapped = !known       ? select(lt(i, Expr(0)), i + data[axis], i)
                       : *known < 0 ? Expr(*known) + data[axis]
                                    : i;
  i = max(min(wrapped, data[axis] - Expr(1)), Expr(0));
  if (known) i = b.simplified(i);
  Index inner(index.begin(), index.begin() + attrs.axis);
  inner.push_back(i);
  inner.insert(inner.end(), index.begin() + attrs.axis + static_cast<int64_t>(indices.size()),
               index.end());
  return b.element(node.inputs[0], inner);
}

// Computed indices are clamped, so none reads outside the tensor.
Expr element_of(GroupBuilder& b, const op::Take& attrs, const Node& node, const Index& index) {
  const Shape& data = b.type(node.inputs[0]).shape;
  Index inner;
  size_t table = 1;
  for (size_t axis = 0; axis < attrs.places.size(); ++axis) {
    if (attrs.places[axis] >= 0) {
      inner.push_back(index[static_cast<size_t>(attrs.places[axis])]);
      continue;
    }
    const ValueId indices = node.inputs[table++];
    Expr i = b.element(indices, broadcast_index(b.type(indices).shape, index));
    if (i.type() != DType::i64) i = cast(DType::i64, i);
    if (attrs.wrap) i = select(lt(i, Expr(0)), i + data[axis], i);
    inner.push_back(b.simplified(max(min(i, data[axis] - Expr(1)), Expr(0))));
  }
  return b.element(node.inputs[0], inner);
}

Expr element_of(GroupBuilder& b, const op::Pad& attrs, const Node& node, const Index& index) {
  const Shape& shape = b.type(node.inputs[0]).shape;
  Index inner;
  Expr inside;
  for (size_t i = 0; i < index.size(); ++i) {
    Expr at = index[i] - attrs.begins[i], last = shape[i] - Expr(1);
    bool padded = !is_const(attrs.begins[i], 0) || !is_const(attrs.ends[i], 0);
    if (padded) {
      switch (attrs.mode) {
        case PadMode::constant:
          inside = logical_and(inside, logical_and(le(Expr(0), at), le(at, last)));
          break;
        case PadMode::edge: at = max(min(at, last), Expr(0)); break;
        case PadMode::reflect: {
          Expr period = max(last * Expr(2), Expr(1)), folded = floor_mod(at, period);
          at = min(folded, period - folded);
          if (is_const(shape[i], 1)) at = Expr(0);
          break;
        }
        case PadMode::wrap: at = floor_mod(at, shape[i]); break;
      }
    }
    inner.push_back(b.simplified(at));
  }
  Expr element = b.element(node.inputs[0], inner);
  if (!inside.defined()) return element;
  bool has_value = node.inputs.size() > 1 && node.inputs[1].valid();
  Expr value = has_value ? b.element(node.inputs[1], {}) : imm(0, element.type());
  return select(b.simplified(inside), element, value);
}

// Along one axis an output position is a weighted sum of `count` input positions. Both are constant
// tables [out * count].
struct TapTables {
  int64_t count = 1;
  Tensor index, weight;
};

TapTables tap_tables(const op::Resize& attrs, size_t axis, int64_t in, int64_t out) {
  std::vector<std::vector<ResizeTap>> taps = resize_taps(attrs, axis, in, out);
  TapTables t;
  if (!taps.empty()) t.count = static_cast<int64_t>(taps[0].size());
  t.index = Tensor::zeros(DType::i64, {out * t.count});
  t.weight = Tensor::zeros(DType::f32, {out * t.count});
  int64_t entry = 0;
  for (const std::vector<ResizeTap>& position : taps)
    for (const ResizeTap& tap : position) {
      t.index.set_int(entry, tap.index);
      t.weight.set(entry++, tap.weight);
    }
  return t;
}

Expr element_of(GroupBuilder& b, const op::Resize& attrs, const Node& node, const Index& index) {
  const Shape& from = b.type(node.inputs[0]).shape;
  // A list of (partial index, weight). Every resized axis multiplies the list by its taps.
  std::vector<std::pair<Index, Expr>> terms = {{{}, Expr()}};
  for (size_t i = 0; i < index.size(); ++i) {
    auto in = as_const(from[i]), out = as_const(attrs.shape[i]);
    if (attrs.scales[i] == 1.0 && is_const(b.simplified(from[i] - attrs.shape[i]), 0)) {
      for (auto& [at, weight] : terms) at.push_back(index[i]);
      continue;
    }
    TW_CHECK(in && out, "resize of a symbolic axis reached lowering: node {0}", node.name);
    int64_t factor = *out / *in;
    if (attrs.mode == ResizeMode::nearest && *out == *in * factor &&
        attrs.scales[i] == static_cast<double>(factor) &&
        attrs.coordinates == CoordinateMode::asymmetric && attrs.nearest == NearestMode::floor) {
      for (auto& [at, weight] : terms)
        at.push_back(b.simplified(floor_div(index[i], Expr(factor))));
      continue;
    }
    TapTables taps = tap_tables(attrs, i, *in, *out);
    BufferId table = b.constant_values("index" + std::to_string(i), taps.index);
    BufferId weights = taps.count > 1 ? b.constant_values("weight" + std::to_string(i), taps.weight)
                                      : BufferId{};
    std::vector<std::pair<Index, Expr>> next;
    for (const auto& [at, weight] : terms) {
      for (int64_t k = 0; k < taps.count; ++k) {
        Expr entry = b.simplified(index[i] * Expr(taps.count) + Expr(k));
        Index position = at;
        position.push_back(load(table, DType::i64, {entry}));
        Expr w = weight;
        if (weights.valid()) {
          Expr own = load(weights, DType::f32, {entry});
          w = w.defined() ? w * own : own;
        }
        next.emplace_back(std::move(position), w);
      }
    }
    terms = std::move(next);
  }
  Expr sum;
  for (const auto& [at, weight] : terms) {
    Expr element = b.element(node.inputs[0], at);
    if (weight.defined()) {
      element = in_f32(element);
      element = element * (weight.type() == element.type() ? weight : cast(element.type(), weight));
    }
    sum = sum.defined() ? sum + element : element;
  }
  return rounded(sum, b.type(node.output).dtype);
}

Expr dim_vector_element(const op::DimVector& attrs, const Index& index) {
  if (attrs.scalar || attrs.values.size() == 1) return attrs.values[0];
  Expr result = attrs.values.back();
  for (size_t i = attrs.values.size() - 1; i-- > 0;)
    result = select(eq(index[0], Expr(static_cast<int64_t>(i))), attrs.values[i], result);
  return result;
}

Expr element_of(GroupBuilder& b, const op::Unary& attrs, const Node& node, const Index& index) {
  const Expr x = b.element(node.inputs[0], index);
  if (stays_in_type(attrs.function) || !is_rounded(b, node)) return unary(attrs.function, x);
  return rounded(unary(attrs.function, in_f32(x)), x.type());
}

Expr element_of(GroupBuilder& b, const op::Select&, const Node& node, const Index& index) {
  auto part = [&](size_t i) {
    return b.element(node.inputs[i], broadcast_index(b.type(node.inputs[i]).shape, index));
  };
  // Logs know the kernel's parameters in this order.
  const Expr otherwise = part(2), then = part(1), condition = part(0);
  return select(condition, then, otherwise);
}

Expr element_of(GroupBuilder& b, const op::Cast& attrs, const Node& node, const Index& index) {
  Expr x = b.element(node.inputs[0], index);
  if (x.type() == attrs.to) return x;
  return cast(attrs.to, x, attrs.saturate);
}

Expr element_of(GroupBuilder& b, const op::Transpose& attrs, const Node& node, const Index& index) {
  Index inner(index.size());
  for (size_t i = 0; i < index.size(); ++i) inner[static_cast<size_t>(attrs.perm[i])] = index[i];
  return b.element(node.inputs[0], inner);
}

Expr element_of(GroupBuilder& b, const op::Reshape&, const Node& node, const Index& index) {
  Expr flat = b.simplified(flatten_index(b.type(node.output).shape, index));
  Index inner = unflatten_index(b.type(node.inputs[0]).shape, flat);
  for (Expr& e : inner) e = b.simplified(e);
  return b.element(node.inputs[0], inner);
}

Expr element_of(GroupBuilder& b, const op::Expand& attrs, const Node& node, const Index& index) {
  const Shape& from = b.type(node.inputs[0]).shape;
  if (attrs.exact) return b.element(node.inputs[0], index);
  Index inner = broadcast_index(from, index);
  // Data decide whether the extent is 1 or the full one.
  for (size_t i = 0, offset = attrs.shape.size() - from.size(); i < from.size(); ++i)
    if (!is_const(from[i], 1) && !equal(Shape{from[i]}, Shape{attrs.shape[offset + i]}))
      inner[i] = min(inner[i], from[i] - 1);
  return b.element(node.inputs[0], inner);
}

Expr element_of(GroupBuilder& b, const op::LayoutCast&, const Node& node, const Index& index) {
  return b.element(node.inputs[0], index);
}

Expr element_of(GroupBuilder& b, const op::Slice& attrs, const Node& node, const Index& index) {
  Index inner;
  for (size_t i = 0; i < index.size(); ++i)
    inner.push_back(b.simplified(attrs.starts[i] + index[i] * Expr(attrs.steps[i])));
  return b.element(node.inputs[0], inner);
}

Expr element_of(GroupBuilder& b, const op::Within&, const Node& node, const Index& index) {
  return b.element(node.inputs[0], index);
}

Expr element_of(GroupBuilder&, const op::Iota& attrs, const Node&, const Index& index) {
  return index[static_cast<size_t>(attrs.axis < 0 ? attrs.axis + static_cast<int64_t>(index.size())
                                                  : attrs.axis)];
}

Expr element_of(GroupBuilder&, const op::DimVector& attrs, const Node&, const Index& index) {
  return dim_vector_element(attrs, index);
}

Expr element_of(GroupBuilder& b, const op::ShapeOf&, const Node& node, const Index& index) {
  return dim_vector_element({b.type(node.inputs[0]).shape, false}, index);
}

Expr element_of(GroupBuilder& b, const op::BatchNorm& attrs, const Node& node, const Index& index) {
  auto input = [&](size_t i, const Index& at) { return in_f32(b.element(node.inputs[i], at)); };
  const DType type = b.type(node.output).dtype, t = accumulator_type(type);
  const Index channel = {index[1]};
  // Logs know the kernel's parameters in this order.
  const Expr variance = input(4, channel), shift = input(2, channel), scale = input(1, channel),
             mean = input(3, channel), x = input(0, index);
  const Expr deviation = unary(UnaryOp::sqrt, variance + imm(attrs.epsilon, t));
  return rounded(binary(BinaryOp::div, x - mean, deviation) * scale + shift, type);
}

}  // namespace

Expr injective_element(GroupBuilder& b, const Node& node, const Index& index) {
  return std::visit(
      [&]<class Op>(const Op& attrs) -> Expr {
        if constexpr (InjectiveOp<Op>) return element_of(b, attrs, node, index);
        b.problem = std::string(op_info(node.attrs).name) +
                    " is not computed element by element within the kernel of another operator";
        const DType type = b.type(node.output).dtype;
        return is_float(type) ? imm(0, type) : int_imm(0, type);
      },
      node.attrs);
}

}  // namespace tw
