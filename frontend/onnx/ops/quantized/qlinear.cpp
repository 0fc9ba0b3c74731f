// Importers of quantized operators of ai.onnx and com.microsoft. A QLinear operator is imported as
// what it stands for, Dequantize -> float operator -> Quantize. The pass fuse-quantization makes
// integer operators of both forms.
#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/quantized/quantized.h"
#include "ir/storage_types.h"

namespace tw::onnx_import {
namespace {

// x - zero. Zero points along the first axis of weights, or along the last axis but one of a left
// operand, get `shape`, which broadcasts.
Val centered(NodeImport& n, Val x, Val zero, Shape shape) {
  if (!zero.valid() || n.failed()) return x;
  if (const std::optional<Tensor> known = n.constant(zero);
      known && std::ranges::all_of(known->bytes, [](std::byte b) { return b == std::byte{0}; }))
    return x;
  if (n.rank(zero) > 0)
    zero = n.static_dim(zero, 0) == 1 && n.rank(zero) == 1 ? n.reshape(zero, {})
           : n.rank(zero) > 1                              ? zero
                                                           : n.reshape(zero, std::move(shape));
  return n.sub(n.cast(x, DType::i16), n.cast(zero, DType::i16));
}

// The value of a zero point, if it is one known number.
std::optional<int64_t> known_zero(NodeImport& n, Val zero) {
  if (!zero.valid()) return 0;
  const std::optional<Tensor> tensor = n.constant(zero);
  return tensor && tensor->size() == 1 ? std::optional<int64_t>(tensor->int_at(0)) : std::nullopt;
}

// Sums of (a - a_zero) * (b - b_zero) in int32. If b is a constant of 8 bits, its sums are
// constants too: the bytes of a are multiplied as they are, counted from their least number, and
// the excess is subtracted.
Val integer_product(NodeImport& n, Val a, Val b, Val a_zero, Val b_zero) {
  b = centered(n, b, b_zero, {1, n.dim(b_zero, 0)});
  if (!n.failed() && a_zero.valid() && n.rank(a) > 1 && n.rank(b) == 2 &&
      n.builder().is_constant(b) && n.dtype(b) == DType::i8 &&
      is_const(element_count(n.shape(a_zero)), 1)) {
    const int64_t least = lowest_of(n.dtype(a)) < 0 ? -128 : 0;
    const Val off = n.sub(n.cast(n.reshape(a_zero, {}), DType::i32),
                          n.scalar(static_cast<double>(least), DType::i32));
    const Val sums = n.reduce(ReduceKind::sum, n.cast(b, DType::i32), {0}, false);
    const Val product = matrix_product(n, a, b, least);
    return n.failed() ? Val{} : n.sub(product, n.mul(off, sums));
  }
  const std::optional<int64_t> zero = n.rank(a) > 1 ? known_zero(n, a_zero) : std::nullopt;
  if (!zero) a = centered(n, a, a_zero, {n.dim(a_zero, 0), 1});
  return n.failed() ? Val{} : matrix_product(n, a, b, zero.value_or(0));
}

// Applies fn to input 0, dequantized by inputs 1 and 2, and quantizes the result by inputs 3 and 4.
template <class Fn>
void requantized(NodeImport& n, Fn fn) {
  const Val x = n.in(0), scale = n.in(1), y_scale = n.in(3);
  if (n.failed()) return;
  const Val y = fn(dequantize(n, x, scale, n.maybe(2)));
  n.set(quantize(n, y, y_scale, n.maybe(4), n.dtype(x)));
}

void refuse_channels_last(NodeImport& n) {
  if (n.integer("channels_last", 0) != 0)
    n.fail("attribute channels_last=1", "export with channels_last=0");
}

}  // namespace

// Inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, optional bias, which is
// quantized with scale x_scale * w_scale.
void import_qlinear_conv(NodeImport& n) {
  const Val x = n.in(0), x_scale = n.in(1), x_zero = n.in(2), w = n.in(3), w_scale = n.in(4),
            w_zero = n.in(5), y_scale = n.in(6), y_zero = n.in(7);
  const Ints kernel = n.failed() ? Ints() : kernel_of(n, x, w);
  if (n.failed()) return;
  const Window window = read_window(n, x, kernel);
  std::vector<Val> inputs = {dequantize(n, x, x_scale, x_zero, 1),
                             dequantize(n, w, w_scale, w_zero, 0)};
  if (n.has(8)) inputs.push_back(dequantize(n, n.in(8), n.mul(x_scale, w_scale), {}, 0));
  if (n.failed()) return;
  const Val y = n.emit(
      op::Conv{window.strides, window.dilations, window.pads, n.integer("group", 1)}, inputs);
  n.set(quantize(n, y, y_scale, y_zero, n.dtype(y_zero)));
}

// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
void import_qlinear_matmul(NodeImport& n) {
  const Val a = n.in(0), a_scale = n.in(1), a_zero = n.in(2), b = n.in(3), b_scale = n.in(4),
            b_zero = n.in(5), y_scale = n.in(6), y_zero = n.in(7);
  if (n.failed()) return;
  const Val left = dequantize(n, a, a_scale, a_zero, -2),
            right = dequantize(n, b, b_scale, b_zero, -1);
  const Val y = n.failed() ? Val{} : matrix_product(n, left, right);
  n.set(quantize(n, y, y_scale, y_zero, n.dtype(y_zero), -2));
}

void import_matmul_integer(NodeImport& n) {
  const Val a = n.in(0), b = n.in(1);
  if (!n.failed()) n.set(integer_product(n, a, b, n.maybe(2), n.maybe(3)));
}

void import_conv_integer(NodeImport& n) {
  Val x = n.in(0);
  const Ints kernel = n.failed() ? Ints() : kernel_of(n, x, n.in(1));
  if (n.failed()) return;
  const Window window = read_window(n, x, kernel);
  Shape per_output(static_cast<size_t>(n.rank(n.in(1))), Expr(1));
  per_output[0] = n.dim(n.maybe(3), 0);
  const Val w = centered(n, n.in(1), n.maybe(3), per_output);
  const std::optional<int64_t> zero = known_zero(n, n.maybe(2));
  if (!zero) x = centered(n, x, n.maybe(2), {1});
  if (!n.failed())
    n.set(n.emit(op::Conv{window.strides, window.dilations, window.pads, n.integer("group", 1),
                          zero.value_or(0)},
                 {x, w}));
}

// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
void import_qlinear_binary(NodeImport& n, BinaryOp function) {
  const Val a = n.in(0), b = n.in(3), y_scale = n.in(6);
  if (n.failed()) return;
  const Val left = dequantize(n, a, n.in(1), n.maybe(2)),
            right = dequantize(n, b, n.in(4), n.maybe(5));
  n.set(quantize(n, n.binary(function, left, right), y_scale, n.maybe(7), n.dtype(a)));
}

void import_qlinear_sigmoid(NodeImport& n) {
  requantized(n, [&](Val x) { return n.unary(UnaryOp::sigmoid, x); });
}

void import_qlinear_leaky_relu(NodeImport& n) {
  const double alpha = n.real("alpha", 0.01f);
  requantized(n, [&](Val x) {
    return n.select(n.less(x, n.scalar(0, x)), n.mul(x, n.scalar(alpha, x)), x);
  });
}

// Softmax along one axis. Opsets before 13 take all axes from `axis` on, which is the same only if
// `axis` is the last one.
void import_qlinear_softmax(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t axis = n.axis(n.integer("axis", -1), n.rank(x));
  if (n.integer("opset", 13) < 13 && axis != n.rank(x) - 1)
    return n.fail("an axis that is not the last, at an opset before 13",
                  "export at opset 13 or later");
  requantized(n, [&](Val real) { return n.emit(op::Softmax{axis, false}, {real}); });
}

void import_qlinear_average_pool(NodeImport& n) {
  refuse_channels_last(n);
  requantized(n, [&](Val x) { return average_pool(n, x); });
}

void import_qlinear_global_average_pool(NodeImport& n) {
  refuse_channels_last(n);
  Ints axes;
  for (int64_t i = 2; i < n.rank(n.in(0)); ++i) axes.push_back(i);
  requantized(n, [&](Val x) { return n.reduce(ReduceKind::mean, x, axes, true); });
}

// Inputs: y_scale, y_zero, then x, x_scale, x_zero of each part
void import_qlinear_concat(NodeImport& n) {
  const Val y_scale = n.in(0), y_zero = n.in(1);
  std::vector<Val> parts;
  for (size_t i = 2; i + 2 < n.input_count() && !n.failed(); i += 3)
    parts.push_back(dequantize(n, n.in(i), n.in(i + 1), n.maybe(i + 2)));
  if (!n.failed() && (parts.empty() || n.input_count() % 3 != 2))
    return n.invalid("inputs that are not scale, zero point and three a part");
  if (n.failed()) return;
  const Val all = n.emit(op::Concat{n.axis(n.integer("axis", 0), n.rank(parts[0]))}, parts);
  n.set(quantize(n, all, y_scale, y_zero, n.dtype(y_zero)));
}

// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, optional c (int32 with scale alpha * a_scale *
// b_scale), optional y_scale, y_zero. Without y_scale the result is in floats.
void import_qgemm(NodeImport& n) {
  const Val a = n.in(0), a_scale = n.in(1), b = n.in(3), b_scale = n.in(4);
  if (!n.failed() && (n.rank(a) != 2 || n.rank(b) != 2)) return n.invalid("QGemm needs matrices");
  const bool trans_b = n.integer("transB", 0) != 0;
  const double alpha = n.real("alpha", 1);
  const Val left = dequantize(n, a, a_scale, n.maybe(2)),
            right = dequantize(n, b, b_scale, n.maybe(5), trans_b ? 0 : 1);
  Val y = n.emit(op::MatMul{n.integer("transA", 0) != 0, trans_b}, {left, right});
  if (n.has(6)) y = n.add(y, dequantize(n, n.in(6), n.mul(a_scale, b_scale), {}, -1));
  if (alpha != 1) y = n.mul(y, n.scalar(alpha, y));
  n.set(n.has(7) ? quantize(n, y, n.in(7), n.maybe(8), n.has(8) ? n.dtype(n.in(8)) : n.dtype(a))
                 : y);
}

namespace {

// f32(sums) * scale + bias
Val scaled_product(NodeImport& n, Val sums, Val scale, Val bias) {
  const Val y = n.mul(n.cast(sums, DType::f32), scale);
  return bias.valid() ? n.add(y, bias) : y;
}

}  // namespace

// Inputs: a, b, a_scale, b_scale, optional a_zero, b_zero, bias
void import_matmul_integer_to_float(NodeImport& n) {
  const Val a = n.in(0), b = n.in(1), a_scale = n.in(2), b_scale = n.in(3);
  if (n.failed()) return;
  n.set(n.cast(
      scaled_product(n, integer_product(n, a, b, n.maybe(4), n.maybe(5)),
                     n.mul(n.cast(a_scale, DType::f32), n.cast(b_scale, DType::f32)), n.maybe(6)),
      n.dtype(a_scale)));
}

namespace {

struct DynamicRange {
  Val scale, zero;
};

// The scale and zero point of the data's range, which includes 0. If all data are 0, the scale is
// 1, as in onnxruntime.
DynamicRange dynamic_range(NodeImport& n, Val a) {
  Ints axes;
  for (int64_t i = 0; i < n.rank(a); ++i) axes.push_back(i);
  const Val zero = n.scalar(0, a);
  const Val low = n.min(zero, n.reduce(ReduceKind::min, a, axes, false)),
            high = n.max(zero, n.reduce(ReduceKind::max, a, axes, false));
  const Val span = n.div(n.sub(high, low), n.scalar(255, a));
  const Val scale = n.select(n.binary(BinaryOp::eq, span, zero), n.scalar(1, a), span);
  if (n.failed()) return {};
  return {scale, n.emit(op::Cast{DType::u8, true},
                        {n.unary(UnaryOp::round, n.div(n.sub(zero, low), scale))})};
}

}  // namespace

// Outputs: y, its scale, its zero point.
void import_dynamic_quantize(NodeImport& n) {
  const Val x = n.in(0);
  if (n.failed()) return;
  const auto [scale, zero] = dynamic_range(n, x);
  if (n.failed()) return;
  n.set(quantize(n, x, scale, zero, DType::u8));
  n.set(1, scale);
  n.set(2, zero);
}

Val dynamic_product(NodeImport& n, Val a, Val b, Val b_scale, Val b_zero, Val bias) {
  if (n.failed()) return {};
  const auto [scale, shift] = dynamic_range(n, a);
  if (n.failed()) return {};
  const Val sums = integer_product(n, quantize(n, a, scale, shift, DType::u8), b, shift, b_zero);
  return n.failed() ? Val{} : scaled_product(n, sums, n.mul(scale, b_scale), bias);
}

// Inputs: a, b, b_scale, optional b_zero, bias
void import_dynamic_quantize_matmul(NodeImport& n) {
  const Val a = n.in(0), b = n.in(1), b_scale = n.in(2);
  if (!n.failed()) n.set(dynamic_product(n, a, b, b_scale, n.maybe(3), n.maybe(4)));
}

}  // namespace tw::onnx_import
