// Importers of QuantizeLinear and DequantizeLinear. By tensor or by axis, with f32 scales, they are
// core operators, which passes know. By block, with other float types, and to or from floats of a
// byte, they are compositions.
#include "frontend/onnx/ops/quantized/quantized.h"

#include "frontend/onnx/ops/importers.h"
#include "ir/storage_types.h"

namespace tw::onnx_import {
namespace {

constexpr const char* kQuantizedTypes =
    "integers of 2 to 16 bits and floats of 8 and 4 bits are supported";

bool is_quantized(DType t) {
  return (is_int(t) && dtype_bits(t) <= 16) || (is_small_float(t) && t != DType::f8e8m0);
}

// A scale or zero point in a shape that broadcasts to x; scalars stay.
Val spread(NodeImport& n, Val parameter, Val x, Along along) {
  if (n.failed() || n.rank(parameter) == 0 || is_const(element_count(n.shape(parameter)), 1))
    return n.reshape(parameter, {});
  const int64_t axis = n.axis(along.axis, n.rank(x));
  if (n.failed()) return {};
  const auto at = static_cast<size_t>(axis);
  if (along.block == 0) {
    Shape shape(static_cast<size_t>(n.rank(x)), Expr(1));
    shape[at] = n.dim(parameter, 0);
    return n.reshape(parameter, std::move(shape));
  }
  Shape blocks = n.shape(parameter);
  const Expr count = blocks[at];
  blocks.insert(blocks.begin() + axis + 1, Expr(1));
  const Val apart = n.reshape(parameter, blocks);
  blocks[at + 1] = along.block;
  Shape whole = n.shape(parameter);
  whole[at] = count * Expr(along.block);
  return n.slice(n.reshape(n.expand(apart, blocks), whole), axis, 0, n.dim(x, axis));
}

// Checks the shape of scales or zero points against x.
void check_parameter(NodeImport& n, Val parameter, Val x, Along along) {
  if (n.failed() || !parameter.valid() || n.rank(parameter) == 0) return;
  if (along.block < 0)
    return n.invalid(llvm::formatv("attribute block_size is {0}", along.block).str());
  if (along.block == 0) {
    if (n.rank(parameter) != 1)
      n.invalid(llvm::formatv("scales of rank {0} without block_size", n.rank(parameter)).str());
    return;
  }
  if (along.block > int64_t{1} << 31) return n.invalid("attribute block_size is beyond 2^31");
  if (n.rank(parameter) != n.rank(x))
    return n.invalid(llvm::formatv("scales of rank {0} for blocks of a tensor of rank {1}",
                                   n.rank(parameter), n.rank(x))
                         .str());
  const int64_t axis = n.axis(along.axis, n.rank(x));
  const auto blocks = n.static_dim(parameter, axis), extent = n.static_dim(x, axis);
  if (!n.failed() && blocks && extent && (*extent + along.block - 1) / along.block != *blocks)
    n.invalid(llvm::formatv("{0} scales for an extent of {1} in blocks of {2}", *blocks, *extent,
                            along.block)
                  .str());
}

// True if passes and kernels know the operation as one operator.
bool is_core(NodeImport& n, Val scale, Val other, Along along, DType integers) {
  return along.block == 0 && n.rank(scale) <= 1 && is_int(integers) &&
         n.dtype(scale) == n.dtype(other) && n.dtype(scale) == DType::f32;
}

int64_t core_axis(NodeImport& n, Val x, Val scale, int64_t axis) {
  return n.rank(scale) > 0 && n.rank(x) > 0 ? n.axis(axis, n.rank(x)) : 0;
}

// A list of one scale counts for the whole tensor, whatever the axis: onnxruntime's quantizer
// writes biases of rank 1 in this way, with the default axis 1.
Val of_tensor(NodeImport& n, Val parameter, Along along) {
  const bool one = parameter.valid() && !n.failed() && along.block == 0 && n.rank(parameter) == 1 &&
                   is_const(element_count(n.shape(parameter)), 1);
  return one ? n.reshape(parameter, {}) : parameter;
}

std::vector<Val> operands(Val x, Val scale, Val zero) {
  return zero.valid() ? std::vector<Val>{x, scale, zero} : std::vector<Val>{x, scale};
}

DType named_type(NodeImport& n, const char* attribute, DType missing) {
  const int64_t given = n.integer(attribute, 0);
  if (given == 0) return missing;
  const std::optional<DType> dtype = dtype_from_onnx(static_cast<int>(given));
  if (!dtype) n.fail(llvm::formatv("{0} {1}", attribute, given).str(), kQuantizedTypes);
  return dtype.value_or(missing);
}

}  // namespace

Val dequantize(NodeImport& n, Val x, Val scale, Val zero, Along along, DType to) {
  scale = of_tensor(n, scale, along), zero = of_tensor(n, zero, along);
  check_parameter(n, scale, x, along);
  check_parameter(n, zero, x, along);
  const DType from = n.dtype(x);
  if (!n.failed() && from != DType::i32 && !is_quantized(from))
    n.fail(llvm::formatv("{0} as a quantized type", dtype_name(from)).str(), kQuantizedTypes);
  if (!n.failed() && !is_float(to))
    n.invalid(llvm::formatv("{0} as the result", dtype_name(to)).str());
  if (n.failed()) return {};
  if (to == DType::f32 && is_core(n, scale, scale, along, from))
    return n.emit(op::Dequantize{core_axis(n, x, scale, along.axis)}, operands(x, scale, zero));
  Val shifted;
  if (is_int(from)) {
    shifted = n.cast(x, DType::i32);
    if (zero.valid()) shifted = n.sub(shifted, n.cast(spread(n, zero, x, along), DType::i32));
  } else {
    shifted = n.cast(x, DType::f32);  // zero points of floats are 0
  }
  return n.cast(n.mul(n.cast(shifted, DType::f32), n.cast(spread(n, scale, x, along), DType::f32)),
                to);
}

Val dequantize(NodeImport& n, Val x, Val scale, Val zero, int64_t axis) {
  return dequantize(n, x, n.cast(scale, DType::f32), zero, {axis, 0}, DType::f32);
}

Val quantize(NodeImport& n, Val x, Val scale, Val zero, DType to, Along along,
             QuantizeOptions options) {
  scale = of_tensor(n, scale, along), zero = of_tensor(n, zero, along);
  check_parameter(n, scale, x, along);
  check_parameter(n, zero, x, along);
  if (!n.failed() && !is_quantized(to))
    n.fail(llvm::formatv("{0} as a quantized type", dtype_name(to)).str(), kQuantizedTypes);
  if (!n.failed() && !is_float(options.precision))
    n.invalid(llvm::formatv("a division in {0}", dtype_name(options.precision)).str());
  if (n.failed()) return {};
  if (options.precision == DType::f32 && is_core(n, scale, x, along, to))
    return n.emit(op::Quantize{to, core_axis(n, x, scale, along.axis)}, operands(x, scale, zero));
  const Val quotient = n.div(n.cast(x, options.precision),
                             n.cast(spread(n, scale, x, along), options.precision));
  if (is_small_float(to)) return n.emit(op::Cast{to, options.saturate}, {quotient});
  Val rounded = n.cast(n.unary(UnaryOp::round, quotient), DType::f32);
  if (zero.valid()) rounded = n.add(rounded, n.cast(spread(n, zero, x, along), DType::f32));
  return n.emit(op::Cast{to, true}, {rounded});
}

Val quantize(NodeImport& n, Val x, Val scale, Val zero, DType to, int64_t axis) {
  return quantize(n, x, n.cast(scale, DType::f32), zero, to, {axis, 0});
}

void import_quantize(NodeImport& n) {
  const Val x = n.in(0), scale = n.in(1), zero = n.maybe(2);
  const DType to = zero.valid() ? n.dtype(zero) : named_type(n, "output_dtype", DType::u8);
  // A scale that is an integer or has a storage type divides in f32
  const DType given = n.dtype(scale),
              own = is_small_float(given) || !is_float(given) ? DType::f32 : given;
  QuantizeOptions options{n.integer("saturate", 1) != 0, named_type(n, "precision", own)};
  const Along along{n.integer("axis", 1), n.integer("block_size", 0)};
  n.set(quantize(n, x, scale, zero, to, along, options));
}

void import_dequantize(NodeImport& n) {
  const Val x = n.in(0), scale = n.in(1);
  const DType to = named_type(n, "output_dtype", n.dtype(scale));
  const Along along{n.integer("axis", 1), n.integer("block_size", 0)};
  n.set(dequantize(n, x, scale, n.maybe(2), along, to));
}

}  // namespace tw::onnx_import
