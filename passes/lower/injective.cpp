// Elements of injective operators: element-wise arithmetic and data movement, as index expressions over their inputs.
#include <algorithm>
#include <cmath>

#include "passes/lower/builder.h"

namespace tw {

Index broadcast_index(const Shape& operand, const Index& result) {
  Index index;
  size_t offset = result.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i) index.push_back(is_const(operand[i], 1) ? Expr(0) : result[offset + i]);
  return index;
}

Expr flatten_index(const Shape& shape, const Index& index) {
  Expr flat(0);
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

Index unflatten_index(const Shape& shape, const Expr& flat) {
  Index index(shape.size());
  Expr rest = flat;
  for (size_t i = shape.size(); i-- > 1;) {
    index[i] = floor_mod(rest, shape[i]);
    rest = floor_div(rest, shape[i]);
  }
  if (!shape.empty()) index[0] = rest;
  return index;
}

namespace {

Expr binary_element(GroupBuilder& b, const op::Binary& attrs, const Node& node, const Index& index) {
  Expr left = b.element(node.inputs[0], broadcast_index(b.type(node.inputs[0]).shape, index));
  Expr right = b.element(node.inputs[1], broadcast_index(b.type(node.inputs[1]).shape, index));
  if (right->kind == ExprKind::float_imm && attrs.function == BinaryOp::div) {
    double inverse = 1.0 / right->float_value;   // exact for powers of two only
    int exponent;
    if (std::frexp(right->float_value, &exponent) == 0.5) return left * imm(inverse, left.type());
  }
  // Clip and relu keep a NaN of their tensor operand: the tensor goes second (ir/expr.h).
  if ((attrs.function == BinaryOp::max || attrs.function == BinaryOp::min) && right->kind == ExprKind::float_imm)
    return binary(attrs.function, right, left);
  return binary(attrs.function, left, right);
}

Expr concat_element(GroupBuilder& b, const op::Concat& attrs, const Node& node, const Index& index) {
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

// Indices are wrapped (negative ones count from the end) and clamped: a bad index never reads outside the tensor.
Expr gather_element(GroupBuilder& b, const op::Gather& attrs, const Node& node, const Index& index) {
  const Shape& data = b.type(node.inputs[0]).shape;
  const Shape& indices = b.type(node.inputs[1]).shape;
  auto axis = static_cast<size_t>(attrs.axis);
  Index where(index.begin() + attrs.axis, index.begin() + attrs.axis + static_cast<int64_t>(indices.size()));
  Expr i = b.element(node.inputs[1], where);
  if (i.type() != DType::i64) i = cast(DType::i64, i);
  if (auto known = as_const(i)) {
    i = *known < 0 ? Expr(*known) + data[axis] : Expr(*known);
  } else {
    Expr wrapped = select(lt(i, Expr(0)), i + data[axis], i);
    i = max(min(wrapped, data[axis] - Expr(1)), Expr(0));
  }
  Index inner(index.begin(), index.begin() + attrs.axis);
  inner.push_back(i);
  inner.insert(inner.end(), index.begin() + attrs.axis + static_cast<int64_t>(indices.size()), index.end());
  return b.element(node.inputs[0], inner);
}

Expr pad_element(GroupBuilder& b, const op::Pad& attrs, const Node& node, const Index& index) {
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

double source_coordinate(const op::Resize& attrs, double scale, int64_t in, int64_t out, int64_t i) {
  auto x = static_cast<double>(i);
  switch (attrs.coordinates) {
    case CoordinateMode::half_pixel: return (x + 0.5) / scale - 0.5;
    case CoordinateMode::asymmetric: return x / scale;
    case CoordinateMode::align_corners: return out == 1 ? 0 : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
    case CoordinateMode::pytorch_half_pixel: return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case CoordinateMode::half_pixel_symmetric: {
      double adjustment = static_cast<double>(out) / (scale * static_cast<double>(in));
      return static_cast<double>(in) / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5;
    }
  }
  TW_UNREACHABLE("bad coordinate mode");
}

int64_t nearest_index(NearestMode mode, double x) {
  switch (mode) {
    case NearestMode::round_prefer_floor: return static_cast<int64_t>(std::ceil(x - 0.5));
    case NearestMode::round_prefer_ceil: return static_cast<int64_t>(std::floor(x + 0.5));
    case NearestMode::floor: return static_cast<int64_t>(std::floor(x));
    case NearestMode::ceil: return static_cast<int64_t>(std::ceil(x));
  }
  TW_UNREACHABLE("bad nearest mode");
}

// Along one axis an output position is a weighted sum of `taps` input positions: both are tables made here.
struct Taps {
  int64_t count = 1;
  Tensor index, weight;   // [out * count]
};

Taps make_taps(const op::Resize& attrs, double scale, int64_t in, int64_t out) {
  Taps t;
  t.count = attrs.mode == ResizeMode::nearest ? 1 : attrs.mode == ResizeMode::linear ? 2 : 4;
  t.index = Tensor::zeros(DType::i64, {out * t.count});
  t.weight = Tensor::zeros(DType::f32, {out * t.count});
  for (int64_t i = 0; i < out; ++i) {
    double x = source_coordinate(attrs, scale, in, out, i);
    if (attrs.mode == ResizeMode::nearest) {
      t.index.set_int(i, std::clamp<int64_t>(nearest_index(attrs.nearest, x), 0, in - 1));
      t.weight.set(i, 1);
      continue;
    }
    double base = std::floor(x), fraction = x - base;
    for (int64_t k = 0; k < t.count; ++k) {
      double distance = std::fabs(fraction - static_cast<double>(k - (t.count / 2 - 1))), w, a = attrs.cubic_a;
      if (attrs.mode == ResizeMode::linear) w = 1 - distance;
      else if (distance <= 1) w = ((a + 2) * distance - (a + 3)) * distance * distance + 1;
      else w = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
      t.index.set_int(i * t.count + k, std::clamp<int64_t>(static_cast<int64_t>(base) + k - (t.count / 2 - 1), 0, in - 1));
      t.weight.set(i * t.count + k, w);
    }
  }
  return t;
}

Expr resize_element(GroupBuilder& b, const op::Resize& attrs, const Node& node, const Index& index) {
  const Shape& from = b.type(node.inputs[0]).shape;
  // A list of (partial index, weight); every resized axis multiplies it by its taps.
  std::vector<std::pair<Index, Expr>> terms = {{{}, Expr()}};
  for (size_t i = 0; i < index.size(); ++i) {
    auto in = as_const(from[i]), out = as_const(attrs.shape[i]);
    if (attrs.scales[i] == 1.0 && b.simplified(eq(from[i], attrs.shape[i])).get() && is_const(b.simplified(from[i] - attrs.shape[i]), 0)) {
      for (auto& [at, weight] : terms) at.push_back(index[i]);
      continue;
    }
    TW_CHECK(in && out, "resize of a symbolic axis reached lowering: node {0}", node.name);
    int64_t factor = *out / *in;
    if (attrs.mode == ResizeMode::nearest && *out == *in * factor && attrs.scales[i] == static_cast<double>(factor) &&
        attrs.coordinates == CoordinateMode::asymmetric && attrs.nearest == NearestMode::floor) {
      for (auto& [at, weight] : terms) at.push_back(b.simplified(floor_div(index[i], Expr(factor))));
      continue;
    }
    Taps taps = make_taps(attrs, attrs.scales[i], *in, *out);
    BufferId table = b.constant_values("index" + std::to_string(i), taps.index);
    BufferId weights = taps.count > 1 ? b.constant_values("weight" + std::to_string(i), taps.weight) : BufferId{};
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
    if (weight.defined()) element = weight.type() == element.type() ? element * weight : element * cast(element.type(), weight);
    sum = sum.defined() ? sum + element : element;
  }
  return sum;
}

Expr dim_vector_element(const op::DimVector& attrs, const Index& index) {
  if (attrs.scalar || attrs.values.size() == 1) return attrs.values[0];
  Expr result = attrs.values.back();
  for (size_t i = attrs.values.size() - 1; i-- > 0;) result = select(eq(index[0], Expr(static_cast<int64_t>(i))), attrs.values[i], result);
  return result;
}

}  // namespace

Expr injective_element(GroupBuilder& b, const Node& node, const Index& index) {
  const OpAttrs& attrs = node.attrs;
  auto input = [&](size_t i, const Index& at) { return b.element(node.inputs[i], at); };
  if (auto* a = std::get_if<op::Unary>(&attrs)) return unary(a->function, input(0, index));
  if (auto* a = std::get_if<op::Binary>(&attrs)) return binary_element(b, *a, node, index);
  if (std::holds_alternative<op::Select>(attrs)) {
    auto part = [&](size_t i) { return input(i, broadcast_index(b.type(node.inputs[i]).shape, index)); };
    return select(part(0), part(1), part(2));
  }
  if (auto* a = std::get_if<op::Cast>(&attrs)) {
    Expr x = input(0, index);
    if (x.type() == a->to) return x;
    return cast(a->to, x, a->saturate);
  }
  if (auto* a = std::get_if<op::Transpose>(&attrs)) {
    Index inner(index.size());
    for (size_t i = 0; i < index.size(); ++i) inner[static_cast<size_t>(a->perm[i])] = index[i];
    return input(0, inner);
  }
  if (std::holds_alternative<op::Reshape>(attrs)) {
    Expr flat = b.simplified(flatten_index(b.type(node.output).shape, index));
    Index inner = unflatten_index(b.type(node.inputs[0]).shape, flat);
    for (Expr& e : inner) e = b.simplified(e);
    return input(0, inner);
  }
  if (std::holds_alternative<op::Expand>(attrs)) return input(0, broadcast_index(b.type(node.inputs[0]).shape, index));
  if (std::holds_alternative<op::LayoutCast>(attrs)) return input(0, index);
  if (auto* a = std::get_if<op::Concat>(&attrs)) return concat_element(b, *a, node, index);
  if (auto* a = std::get_if<op::Slice>(&attrs)) {
    Index inner;
    for (size_t i = 0; i < index.size(); ++i) inner.push_back(b.simplified(a->starts[i] + index[i] * Expr(a->steps[i])));
    return input(0, inner);
  }
  if (auto* a = std::get_if<op::Gather>(&attrs)) return gather_element(b, *a, node, index);
  if (auto* a = std::get_if<op::Pad>(&attrs)) return pad_element(b, *a, node, index);
  if (auto* a = std::get_if<op::Resize>(&attrs)) return resize_element(b, *a, node, index);
  if (auto* a = std::get_if<op::DimVector>(&attrs)) return dim_vector_element(*a, index);
  if (std::holds_alternative<op::ShapeOf>(attrs)) {
    const Shape& shape = b.type(node.inputs[0]).shape;
    return dim_vector_element({shape, false}, index);
  }
  if (std::holds_alternative<op::BatchNorm>(attrs)) {
    DType t = b.type(node.output).dtype;
    Index channel = {index[1]};
    Expr deviation = unary(UnaryOp::sqrt, input(4, channel) + imm(std::get<op::BatchNorm>(attrs).epsilon, t));
    return binary(BinaryOp::div, input(0, index) - input(3, channel), deviation) * input(1, channel) + input(2, channel);
  }
  TW_UNREACHABLE("{0} (node {1}) is not injective", op_info(attrs).name, node.name);
}

}  // namespace tw
