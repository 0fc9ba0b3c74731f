// Importers of weights with 2, 4 or 8 bits in blocks (com.microsoft): MatMulNBits and
// GatherBlockQuantized.
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

// Unpacks numbers of `bits` bits, low bits first, along the last axis. The result is u8, with 8 /
// bits times as many elements.
Val unpacked(NodeImport& n, Val bytes, int64_t bits) {
  if (bits == 8 || n.failed()) return bytes;
  const int64_t in_byte = 8 / bits;
  Tensor shifts = Tensor::zeros(DType::u8, {in_byte});
  for (int64_t i = 0; i < in_byte; ++i) shifts.set_int(i, i * bits);
  Shape shape = n.shape(bytes), apart = shape;
  apart.push_back(1);
  shape.back() = shape.back() * Expr(in_byte);
  const Val shifted = n.binary(BinaryOp::shr, n.reshape(bytes, apart),
                               n.builder().add_constant(shifts));
  return n.reshape(n.binary(BinaryOp::bit_and, shifted,
                            n.scalar(static_cast<double>((1 << bits) - 1), DType::u8)),
                   shape);
}

// Zero points [N, blocks] in the type of `like`, from their packed or plain form. If they are
// absent: one number, half of the range.
Val zero_points(NodeImport& n, Val zeros, int64_t bits, const Expr& blocks, Val like) {
  if (!zeros.valid()) return n.scalar(static_cast<double>(1 << (bits - 1)), like);
  if (n.dtype(zeros) != DType::u8) return n.reshape(n.cast(zeros, n.dtype(like)), n.shape(like));
  if (n.rank(zeros) == 1)
    zeros = n.reshape(zeros, {n.dim(like, 0), floor_div(n.dim(zeros, 0), n.dim(like, 0))});
  return n.cast(n.slice(unpacked(n, zeros, bits), 1, 0, blocks), n.dtype(like));
}

bool bad_bits(NodeImport& n, int64_t bits) {
  if (bits != 2 && bits != 4 && bits != 8)
    n.fail(llvm::formatv("attribute bits={0}", bits).str(), "quantize to 2, 4 or 8 bits");
  return n.failed();
}

// The whole matrix as [K, N]; `groups` names the block of each row.
Val matrix_by_groups(NodeImport& n, Val b, Val scales, Val zeros, Val groups, int64_t bits,
                     int64_t depth) {
  const Expr columns = n.dim(b, 0), padded = n.dim(b, 1) * n.dim(b, 2) * Expr(8 / bits);
  const Val codes = n.slice(n.reshape(unpacked(n, b, bits), {columns, padded}), 1, 0, depth);
  const auto by_row = [&](Val v) {
    return n.rank(v) == 0 ? v : n.emit(op::Gather{1}, {v, groups});
  };
  const Val w = n.mul(n.sub(n.cast(codes, n.dtype(scales)), by_row(zeros)), by_row(scales));
  return n.transpose(w, {1, 0});
}

}  // namespace

// Inputs: a, b [N, blocks, bytes], scales, zero_points, g_idx, bias
void import_matmul_nbits(NodeImport& n) {
  const Val a = n.in(0);
  Val b = n.in(1), scales = n.in(2);
  const int64_t bits = n.integer("bits", 4), block = n.integer("block_size", 0),
                depth = n.integer("K", 0), columns = n.integer("N", 0);
  if (n.failed() || bad_bits(n, bits)) return;
  if (n.integer("weight_prepacked", 0) != 0)
    return n.fail("attribute weight_prepacked=1", "export with weights in their plain order");
  constexpr int64_t kMost = int64_t{1} << 32;
  if (block < 16 || block > (1 << 20) || (block & (block - 1)) != 0)
    return n.invalid(
        llvm::formatv("attribute block_size={0}, expected a power of two from 16 on", block).str());
  if (depth < 1 || columns < 1 || depth > kMost || columns > kMost)
    return n.invalid(llvm::formatv("a matrix of {0} x {1}", depth, columns).str());
  if (n.dtype(b) != DType::u8)
    return n.invalid(
        llvm::formatv("weights of type {0}, expected uint8", dtype_name(n.dtype(b))).str());
  if (n.rank(a) < 1 || !is_const(n.simplified(n.dim(a, n.rank(a) - 1) - Expr(depth)), 0))
    return n.invalid(
        llvm::formatv("an input of shape {0} for K={1}", to_string(n.shape(a)), depth).str());
  const int64_t blocks = (depth + block - 1) / block;
  b = n.reshape(b, {columns, blocks, block * bits / 8});
  scales = n.reshape(n.cast(scales, n.dtype(a)), {columns, blocks});
  const Val zeros = zero_points(n, n.maybe(3), bits, blocks, scales);
  if (n.failed()) return;
  Val y;
  if (n.has(4) && n.static_dim(n.in(4), 0) != 0) {
    y = matrix_product(n, a, matrix_by_groups(n, b, scales, zeros, n.in(4), bits, depth));
  } else {
    constexpr int64_t kByteRows = 4;  // accuracy level of 8-bit rows, as in onnxruntime
    const Val rows = n.rank(a) == 1 ? n.reshape(a, {1, depth}) : a;
    y = n.emit(op::MatMulNBits{bits, block, n.integer("accuracy_level", 0) == kByteRows},
               {rows, b, scales, zeros});
    if (n.rank(a) == 1) y = n.reshape(y, {columns});
  }
  n.set(n.has(5) ? n.add(y, n.in(5)) : y);
}

// Inputs: data [rows, columns / numbers in a byte] of u8, indices, scales [rows, blocks],
// zero_points
void import_gather_block_quantized(NodeImport& n) {
  const Val data = n.in(0), indices = n.in(1), scales = n.in(2);
  const int64_t bits = n.integer("bits", 4), block = n.integer("block_size", 128);
  if (n.failed() || bad_bits(n, bits)) return;
  const int64_t rank = n.rank(data);
  if (n.dtype(data) != DType::u8)
    return n.fail(llvm::formatv("data of type {0}", dtype_name(n.dtype(data))).str(),
                  "pack the numbers in uint8");
  if (rank != 2 || n.axis(n.integer("gather_axis", 0), rank) != 0 ||
      n.axis(n.integer("quantize_axis", 1), rank) != 1)
    return n.fail("other axes than rows of a matrix quantized along its columns",
                  "use gather_axis=0 and quantize_axis=1");
  if (block < 16 || block > (1 << 20))
    return n.invalid(llvm::formatv("attribute block_size={0}", block).str());
  const auto rows = [&](Val v) { return n.emit(op::Gather{0}, {v, indices}); };
  const Val codes = unpacked(n, rows(data), bits);
  const int64_t last = n.rank(codes) - 1,
                columns = n.need_static_dim(codes, last, "GatherBlockQuantized");
  const int64_t blocks = n.need_static_dim(scales, 1, "GatherBlockQuantized");
  if (n.failed()) return;
  if (blocks != (columns + block - 1) / block)
    return n.invalid(
        llvm::formatv("{0} scales for {1} columns in blocks of {2}", blocks, columns, block).str());
  Tensor order = Tensor::zeros(DType::i64, {columns});
  for (int64_t i = 0; i < columns; ++i) order.set_int(i, i / block);
  const Val of_column = n.builder().add_constant(order);
  const auto by_column = [&](Val v) { return n.emit(op::Gather{last}, {v, of_column}); };
  Val zeros = n.scalar(static_cast<double>(1 << (bits - 1)), scales);
  if (n.has(3))
    zeros = by_column(
        n.cast(n.slice(unpacked(n, rows(n.in(3)), bits), last, 0, blocks), n.dtype(scales)));
  n.set(n.mul(n.sub(n.cast(codes, n.dtype(scales)), zeros), by_column(rows(scales))));
}

}  // namespace tw::onnx_import
