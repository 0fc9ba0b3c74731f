// Operators that make tensors: constants, ranges, masks.
#include <cmath>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxMade = int64_t{1} << 24;  // elements of a tensor that import writes out

Val vector_of(NodeImport& n, const std::vector<int64_t>& values, Shape shape) {
  return n.builder().known({values.begin(), values.end()}, DType::i64, std::move(shape));
}

// 0, 1 ... count - 1 along one axis of the given rank
Val positions(NodeImport& n, int64_t count, size_t rank, size_t axis) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i);
  Shape shape(rank, Expr(1));
  shape[axis] = count;
  return vector_of(n, values, std::move(shape));
}

}  // namespace

void import_constant(NodeImport& n, int) {
  if (const OnnxTensor* value = n.tensor("value")) return n.set(n.constant_tensor(*value));
  if (n.has_attribute("value_float")) return n.set(n.scalar(n.real("value_float", 0), DType::f32));
  if (n.has_attribute("value_int")) return n.set(n.builder().known({Expr(n.integer("value_int", 0))}, DType::i64, {}));
  if (const auto values = n.integers("value_ints")) return n.set(vector_of(n, *values, {static_cast<int64_t>(values->size())}));
  if (const auto values = n.reals("value_floats")) {
    Tensor tensor = Tensor::zeros(DType::f32, {static_cast<int64_t>(values->size())});
    for (size_t i = 0; i < values->size(); ++i) tensor.set(static_cast<int64_t>(i), static_cast<double>((*values)[i]));
    return n.set(n.builder().add_constant(tensor));
  }
  const bool text = n.has_attribute("value_string") || n.has_attribute("value_strings");
  n.fail(text ? "dtype string" : "a sparse value", text ? "leave strings out of the model" : "store it as a dense tensor");
}

void import_constant_of_shape(NodeImport& n, int) {
  const Shape shape = n.dims(n.in(0), "the shape");
  Val value = n.scalar(0, DType::f32);
  if (const OnnxTensor* given = n.tensor("value")) value = n.reshape(n.constant_tensor(*given), {});
  for (const Expr& dim : shape)
    if (const auto extent = as_const(dim); extent && *extent < 0) return n.invalid("a negative dimension");
  n.set(n.expand(value, shape));
}

// start, start + delta ... before limit; constants only.
void import_range(NodeImport& n, int) {
  const Val x = n.in(0), y = n.in(1), z = n.in(2);
  const std::optional<Tensor> start = n.constant(x), limit = n.constant(y), delta = n.constant(z);
  if (n.failed()) return;
  if (!start || !limit || !delta) return n.fail_symbolic("start, limit or delta that is not constant");
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1) return n.invalid("start, limit and delta must be scalars");
  const bool real = is_float(start->dtype);
  const double step = delta->at(0), span = limit->at(0) - start->at(0), count = std::ceil(span / step);
  if (step == 0) return n.invalid("a delta of 0");
  if (!(count <= static_cast<double>(kMaxMade))) return n.fail("a range of more than 2^24 elements", "make it an input");
  const auto size = static_cast<int64_t>(std::max(count, 0.0));
  Tensor tensor = Tensor::zeros(start->dtype, {size});
  for (int64_t i = 0; i < size; ++i) {
    if (real) tensor.set(i, start->at(0) + static_cast<double>(i) * step);
    else tensor.set_int(i, start->int_at(0) + i * delta->int_at(0));
  }
  n.set(n.builder().add_constant(tensor));
}

// on where the new axis equals the index, off elsewhere; negative indices count from the end
void import_one_hot(NodeImport& n, int) {
  const Val indices = n.cast(n.in(0), DType::i64), values = n.in(2);
  const std::optional<Tensor> given = n.constant(n.in(1));
  if (n.failed()) return;
  if (!given || given->size() != 1) return n.fail_symbolic("a depth that is not constant");
  const auto depth = static_cast<int64_t>(given->at(0));
  if (depth < 1 || depth > kMaxMade) return n.invalid(llvm::formatv("a depth of {0}", depth).str());
  const auto rank = static_cast<size_t>(n.rank(indices)) + 1;
  const auto axis = static_cast<size_t>(n.axis(n.integer("axis", -1), static_cast<int64_t>(rank)));
  Shape shape = n.shape(indices);
  shape.insert(shape.begin() + static_cast<int64_t>(axis), Expr(1));
  const Val zero = n.scalar(0, DType::i64);
  const Val plain = n.select(n.less(indices, zero), n.add(indices, n.scalar(static_cast<double>(depth), DType::i64)), indices);
  const Val hit = n.binary(BinaryOp::eq, n.reshape(plain, std::move(shape)), positions(n, depth, rank, axis));
  const Val off = n.reshape(n.slice(values, 0, 0, 1), {}), on = n.reshape(n.slice(values, 0, 1, 1), {});
  n.set(n.select(hit, on, off));
}

// Keeps column - row <= k (lower) or >= k (upper) of the last two axes.
void import_trilu(NodeImport& n, int) {
  const Val x = n.in(0);
  const int64_t rank = n.rank(x);
  if (!n.failed() && rank < 2) return n.invalid("Trilu needs a matrix");
  const int64_t rows = n.need_static_dim(x, rank - 2, "Trilu"), columns = n.need_static_dim(x, rank - 1, "Trilu");
  const Ints offset = n.has(1) ? n.constants(n.in(1), "k") : Ints{0};
  if (n.failed()) return;
  if (offset.size() != 1) return n.invalid("k must be a scalar");
  if (std::max(rows, columns) > kMaxMade) return n.fail("an axis of more than 2^24 elements");
  const bool upper = n.integer("upper", 1) != 0;
  const int64_t k = std::clamp<int64_t>(offset[0], -2 * kMaxMade, 2 * kMaxMade);
  const Val column = positions(n, columns, 2, 1), row = n.add(positions(n, rows, 2, 0), n.scalar(static_cast<double>(k), DType::i64));
  const Val keep = upper ? n.binary(BinaryOp::le, row, column) : n.binary(BinaryOp::le, column, row);
  n.set(n.select(keep, x, n.scalar(0, x)));
}

void import_eye_like(NodeImport& n, int) {
  const Val x = n.in(0);
  if (!n.failed() && n.rank(x) != 2) return n.invalid("EyeLike needs a matrix");
  const int64_t rows = n.need_static_dim(x, 0, "EyeLike"), columns = n.need_static_dim(x, 1, "EyeLike");
  const int64_t k = std::clamp<int64_t>(n.integer("k", 0), -2 * kMaxMade, 2 * kMaxMade), to = n.integer("dtype", 0);
  const std::optional<DType> dtype = n.has_attribute("dtype") ? dtype_from_onnx(static_cast<int>(to)) : n.dtype(x);
  if (!dtype) return n.fail("dtype " + element_type_name(static_cast<int>(to)), "convert the model to float32 or an integer type");
  if (std::max(rows, columns) > kMaxMade) return n.fail("an axis of more than 2^24 elements");
  const Val row = n.add(positions(n, rows, 2, 0), n.scalar(static_cast<double>(k), DType::i64));
  n.set(n.cast(n.binary(BinaryOp::eq, row, positions(n, columns, 2, 1)), *dtype));
}

}  // namespace tw::onnx_import
