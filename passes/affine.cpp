#include "passes/affine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/scalar_ops.h"

namespace tw {
namespace {

// The elements of a constant operand, and the axis of the other operand along which they differ.
struct Numbers {
  int axis = -1;
  std::vector<double> values;
};
constexpr int64_t kMaxElements = 1 << 20;

std::optional<Numbers> numbers_along(const Graph& graph, ValueId constant, const Shape& shape) {
  if (!graph.is_constant(constant)) return std::nullopt;
  if (std::optional<double> all = splat(graph, constant)) return Numbers{-1, {*all}};
  const Shape& own = graph.value(constant).type.shape;
  Numbers numbers;
  for (size_t i = 0; i < own.size(); ++i) {
    if (is_const(own[i], 1)) continue;
    size_t axis = i + shape.size() - own.size();
    if (numbers.axis >= 0 || !equal(own[i], shape[axis]) ||
        as_const(own[i]).value_or(kMaxElements + 1) > kMaxElements)
      return std::nullopt;
    numbers.axis = static_cast<int>(axis);
  }
  numbers.values = to_doubles(graph.constant_tensor(constant));
  return numbers;
}

std::optional<AffineNode> affine_batch_norm(const Graph& graph, const Node& node) {
  std::vector<std::vector<double>> parameters;
  for (size_t i = 1; i < 5; ++i) {
    if (!graph.is_constant(node.inputs[i])) return std::nullopt;
    parameters.push_back(to_doubles(graph.constant_tensor(node.inputs[i])));
  }
  double epsilon = std::get<op::BatchNorm>(node.attrs).epsilon;
  AffineNode out{node.inputs[0], {1, {}, {}}};
  for (size_t c = 0; c < parameters[0].size(); ++c) {
    double scale = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    out.function.scale.push_back(scale);
    out.function.shift.push_back(parameters[1][c] - parameters[2][c] * scale);
  }
  return out;
}

std::optional<AffineNode> affine_binary(const Graph& graph, const Node& node) {
  BinaryOp function = std::get<op::Binary>(node.attrs).function;
  size_t side = graph.is_constant(node.inputs[0]) ? 1 : 0;
  ValueId x = node.inputs[side];
  if (graph.is_constant(x) || !equal(graph.value(x).type, graph.value(node.output).type))
    return std::nullopt;
  bool linear = function == BinaryOp::add || function == BinaryOp::sub ||
                function == BinaryOp::mul || (function == BinaryOp::div && side == 0);
  if (!linear) return std::nullopt;
  std::optional<Numbers> numbers = numbers_along(graph, node.inputs[1 - side],
                                                 graph.value(x).type.shape);
  if (!numbers) return std::nullopt;
  size_t count = numbers->values.size();
  Affine affine{numbers->axis, std::vector<double>(count, 1.0), std::vector<double>(count, 0.0)};
  if (function == BinaryOp::mul) {
    affine.scale = numbers->values;
  } else if (function == BinaryOp::div) {
    for (size_t i = 0; i < count; ++i) affine.scale[i] = 1 / numbers->values[i];
  } else if (function == BinaryOp::add || side == 1) {
    affine.shift = numbers->values;
    if (function == BinaryOp::sub) affine.scale.assign(count, -1.0);  // c - x
  } else {
    for (size_t i = 0; i < count; ++i) affine.shift[i] = -numbers->values[i];
  }
  return AffineNode{x, affine};
}

bool is_finite(const Affine& affine, DType dtype) {
  const auto finite = [&](double v) { return std::isfinite(round_to(dtype, v)); };
  return std::ranges::all_of(affine.scale, finite) && std::ranges::all_of(affine.shift, finite);
}

bool is_moderate_scale(double value, DType dtype) {
  const double limit = moderate_limit(dtype), size = std::abs(value);
  return value == 0 || (size <= limit && size >= 1 / limit);
}

bool is_moderate_shift(double value, DType dtype) {
  const double size = std::abs(value);
  return value == 0 || (size <= moderate_limit(dtype) && size >= smallest_normal(dtype));
}

// True if the sum has lost half of the type's digits.
bool cancels(double term, double sum, DType dtype) {
  const double half_of_digits = dtype == DType::f64   ? 0x1p-26
                                : dtype == DType::f32 ? 0x1p-12
                                                      : 0x1p-4;
  return std::abs(sum) < std::abs(term) * half_of_digits;
}

}  // namespace

bool Affine::scales() const {
  return std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1; });
}
bool Affine::shifts() const {
  return std::any_of(shift.begin(), shift.end(), [](double s) { return s != 0; });
}

double moderate_limit(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p256;
    case DType::f16: return 0x1p8;
    default: return 0x1p32;  // f32 and bf16, which have the same exponents
  }
}

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::min();
    case DType::f16: return 0x1p-14;
    default: return std::numeric_limits<float>::min();
  }
}

std::optional<AffineNode> affine_node(const Graph& graph, const Node& node) {
  const DType dtype = graph.value(node.output).type.dtype;
  if (!is_float(dtype) || !all_plain(graph, node)) return std::nullopt;
  std::optional<AffineNode> affine;
  if (is_unary(&node, UnaryOp::neg)) affine = AffineNode{node.inputs[0], {-1, {-1.0}, {0.0}}};
  if (std::holds_alternative<op::BatchNorm>(node.attrs)) affine = affine_batch_norm(graph, node);
  if (std::holds_alternative<op::Binary>(node.attrs)) affine = affine_binary(graph, node);
  return affine && is_finite(affine->function, dtype) ? affine : std::nullopt;
}

std::optional<Affine> compose(const Affine& first, const Affine& second, DType dtype) {
  if (first.axis >= 0 && second.axis >= 0 && first.axis != second.axis) return std::nullopt;
  Affine out{std::max(first.axis, second.axis), {}, {}};
  size_t count = std::max(first.scale.size(), second.scale.size());
  for (size_t i = 0; i < count; ++i) {
    const double moved = second.scale_at(i) * first.shift_at(i);
    const double scale = second.scale_at(i) * first.scale_at(i), shift = moved + second.shift_at(i);
    for (const double factor : {first.scale_at(i), second.scale_at(i), scale})
      if (!is_moderate_scale(factor, dtype)) return std::nullopt;
    for (const double term : {first.shift_at(i), second.shift_at(i), shift})
      if (!is_moderate_shift(term, dtype)) return std::nullopt;
    if (cancels(moved, shift, dtype)) return std::nullopt;
    out.scale.push_back(scale);
    out.shift.push_back(shift);
  }
  return out;
}

Tensor broadcastable(const Affine& affine, const std::vector<double>& numbers, DType dtype,
                     size_t rank) {
  std::vector<int64_t> shape;
  if (affine.axis >= 0) {
    shape.assign(rank - static_cast<size_t>(affine.axis), 1);
    shape[0] = static_cast<int64_t>(numbers.size());
  }
  return from_doubles(dtype, shape, numbers);
}

}  // namespace tw
