// Quantized tensors. The QLinear operators arrive as what they stand for, Dequantize -> float operator -> Quantize; the pass
// fuse-quantization makes integer operators of both forms.
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

bool is_quantized(DType t) { return t == DType::i8 || t == DType::u8 || t == DType::i16 || t == DType::u16; }

// A scalar or one number for each index of an axis; blocks are of a higher rank.
void check_scale(NodeImport& n, Val scale) {
  if (n.integer("block_size", 0) != 0 || (!n.failed() && n.rank(scale) > 1)) return n.fail("scales by block", "quantize by tensor or by axis");
  if (!n.failed() && n.dtype(scale) != DType::f32)
    n.fail(llvm::formatv("scales of type {0}", dtype_name(n.dtype(scale))).str(), "quantize with float32 scales");
}

Val dequantize(NodeImport& n, Val x, Val scale, Val zero, int64_t axis) {
  check_scale(n, scale);
  if (!n.failed() && n.dtype(x) != DType::i32 && !is_quantized(n.dtype(x)))
    n.fail(llvm::formatv("{0} as a quantized type", dtype_name(n.dtype(x))).str(), "int8, uint8, int16, uint16 and int32 are supported");
  if (!n.failed() && n.rank(scale) > 0 && n.rank(x) > 0) axis = n.axis(axis, n.rank(x));
  std::vector<Val> inputs = {x, scale};
  if (zero.valid()) inputs.push_back(zero);
  return n.failed() ? Val{} : n.emit(op::Dequantize{axis}, inputs);
}

Val quantize(NodeImport& n, Val x, Val scale, Val zero, DType to, int64_t axis) {
  check_scale(n, scale);
  if (!n.failed() && n.dtype(x) != DType::f32) n.fail(llvm::formatv("a quantized {0}", dtype_name(n.dtype(x))).str(), "quantize float32");
  if (!n.failed() && !is_quantized(to)) n.fail(llvm::formatv("{0} as a quantized type", dtype_name(to)).str(), "int8, uint8, int16 and uint16 are supported");
  if (!n.failed() && n.rank(scale) > 0 && n.rank(x) > 0) axis = n.axis(axis, n.rank(x));
  std::vector<Val> inputs = {x, scale};
  if (zero.valid()) inputs.push_back(zero);
  return n.failed() ? Val{} : n.emit(op::Quantize{to, axis}, inputs);
}

// The type that the attribute output_dtype names (TensorProto.DataType), `missing` without it.
DType output_type(NodeImport& n, DType missing) {
  const int64_t given = n.integer("output_dtype", 0);
  if (given == 0) return missing;
  const std::optional<DType> dtype = dtype_from_onnx(static_cast<int>(given));
  if (!dtype) n.fail(llvm::formatv("output_dtype {0}", given).str(), "int8, uint8, int16 and uint16 are supported");
  return dtype.value_or(missing);
}

// x - zero. Zero points along the first axis of weights or the last but one of a left operand get the shape that broadcasts.
Val centered(NodeImport& n, Val x, Val zero, Shape shape) {
  if (!zero.valid() || n.failed()) return x;
  if (n.rank(zero) > 0) zero = n.static_dim(zero, 0) == 1 && n.rank(zero) == 1 ? n.reshape(zero, {}) : n.reshape(zero, std::move(shape));
  return n.sub(n.cast(x, DType::i16), n.cast(zero, DType::i16));
}

// The value of a zero point that is one number known here.
std::optional<int64_t> known_zero(NodeImport& n, Val zero) {
  if (!zero.valid()) return 0;
  const std::optional<Tensor> tensor = n.constant(zero);
  return tensor && tensor->size() == 1 ? std::optional<int64_t>(tensor->int_at(0)) : std::nullopt;
}

}  // namespace

void import_quantize(NodeImport& n, int) {
  const Val zero = n.maybe(2);
  if (n.integer("precision", 1) > 1) return n.fail("a precision other than float32", "leave the attribute out");
  const DType to = output_type(n, zero.valid() ? n.dtype(zero) : DType::u8);
  n.set(quantize(n, n.in(0), n.in(1), zero, to, n.integer("axis", 1)));
}

void import_dequantize(NodeImport& n, int) {
  if (output_type(n, DType::f32) != DType::f32) return n.fail("an output that is not float32", "leave the attribute output_dtype out");
  n.set(dequantize(n, n.in(0), n.in(1), n.maybe(2), n.integer("axis", 1)));
}

// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, optional bias, quantized with scale x_scale * w_scale.
void import_qlinear_conv(NodeImport& n, int) {
  const Val x = n.in(0), x_scale = n.in(1), x_zero = n.in(2), w = n.in(3), w_scale = n.in(4), w_zero = n.in(5), y_scale = n.in(6), y_zero = n.in(7);
  const Ints kernel = n.failed() ? Ints() : kernel_of(n, x, w);
  if (n.failed()) return;
  const Window window = read_window(n, x, kernel);
  std::vector<Val> inputs = {dequantize(n, x, x_scale, x_zero, 1), dequantize(n, w, w_scale, w_zero, 0)};
  if (n.has(8)) inputs.push_back(dequantize(n, n.in(8), n.mul(x_scale, w_scale), {}, 0));
  if (n.failed()) return;
  const Val y = n.emit(op::Conv{window.strides, window.dilations, window.pads, n.integer("group", 1)}, inputs);
  if (!n.failed()) n.set(quantize(n, y, y_scale, y_zero, n.dtype(y_zero), 1));
}

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
void import_qlinear_matmul(NodeImport& n, int) {
  const Val a = n.in(0), a_scale = n.in(1), a_zero = n.in(2), b = n.in(3), b_scale = n.in(4), b_zero = n.in(5), y_scale = n.in(6), y_zero = n.in(7);
  if (n.failed()) return;
  const Val left = dequantize(n, a, a_scale, a_zero, -2), right = dequantize(n, b, b_scale, b_zero, -1);
  const Val y = n.failed() ? Val{} : matrix_product(n, left, right);
  if (!n.failed()) n.set(quantize(n, y, y_scale, y_zero, n.dtype(y_zero), -2));
}

// Sums of (a - a_zero) * (b - b_zero) in int32.
void import_matmul_integer(NodeImport& n, int) {
  Val a = n.in(0);
  const Val b = centered(n, n.in(1), n.maybe(3), {1, n.dim(n.maybe(3), 0)});
  const std::optional<int64_t> zero = n.rank(a) > 1 ? known_zero(n, n.maybe(2)) : std::nullopt;
  if (!zero) a = centered(n, a, n.maybe(2), {n.dim(n.maybe(2), 0), 1});
  if (!n.failed()) n.set(matrix_product(n, a, b, zero.value_or(0)));
}

void import_conv_integer(NodeImport& n, int) {
  Val x = n.in(0);
  const Ints kernel = n.failed() ? Ints() : kernel_of(n, x, n.in(1));
  if (n.failed()) return;
  const Window window = read_window(n, x, kernel);
  Shape per_output(static_cast<size_t>(n.rank(n.in(1))), Expr(1));
  per_output[0] = n.dim(n.maybe(3), 0);
  const Val w = centered(n, n.in(1), n.maybe(3), per_output);
  const std::optional<int64_t> zero = known_zero(n, n.maybe(2));
  if (!zero) x = centered(n, x, n.maybe(2), {1});
  if (!n.failed()) n.set(n.emit(op::Conv{window.strides, window.dilations, window.pads, n.integer("group", 1), zero.value_or(0)}, {x, w}));
}

}  // namespace tw::onnx_import
