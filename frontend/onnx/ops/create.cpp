// Importers of operators that make tensors: constants, ranges, masks.
#include <cmath>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"
#include "frontend/onnx/ops/strings/strings.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxMade = int64_t{1} << 24;  // limit of elements that the import writes out
constexpr int64_t kMaxExtent = int64_t{1} << 40;
constexpr int64_t kMaxDim = 2 * kMaxExtent;  // larger than every extent

Val vector_of(NodeImport& n, const std::vector<int64_t>& values, Shape shape) {
  return n.builder().known({values.begin(), values.end()}, DType::i64, std::move(shape));
}

}  // namespace

void import_constant(NodeImport& n) {
  if (const OnnxTensor* value = n.tensor("value")) return n.set(n.constant_tensor(*value));
  if (n.has_attribute("value_float")) return n.set(n.scalar(n.real("value_float", 0), DType::f32));
  if (n.has_attribute("value_int"))
    return n.set(n.builder().known({Expr(n.integer("value_int", 0))}, DType::i64, {}));
  if (const auto values = n.integers("value_ints"))
    return n.set(vector_of(n, *values, {static_cast<int64_t>(values->size())}));
  if (const auto values = n.reals("value_floats")) {
    Tensor tensor = Tensor::zeros(DType::f32, {static_cast<int64_t>(values->size())});
    for (size_t i = 0; i < values->size(); ++i)
      tensor.set(static_cast<int64_t>(i), static_cast<double>((*values)[i]));
    return n.set(n.builder().add_constant(tensor));
  }
  if (n.has_attribute("value_string"))
    return n.set(string_constant(n, {n.text("value_string", "")}, {}));
  if (const auto values = n.texts("value_strings"))
    return n.set(string_constant(n, *values, {Expr(std::ssize(*values))}));
  n.invalid("a constant without a value");
}

void import_constant_of_shape(NodeImport& n) {
  const Shape shape = n.dims(n.in(0), "the shape");
  Val value = n.scalar(0, DType::f32);
  if (const OnnxTensor* given = n.tensor("value")) value = n.reshape(n.constant_tensor(*given), {});
  for (const Expr& dim : shape)
    if (const auto extent = as_const(dim); extent && *extent < 0)
      return n.invalid("a negative dimension");
  n.set(n.expand(value, shape));
}

namespace {

Val constant_range(NodeImport& n, const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const bool real = is_float(start.dtype);
  const double step = delta.at(0), count = std::ceil((limit.at(0) - start.at(0)) / step);
  if (!std::isfinite(count)) {
    n.invalid("start, limit and delta that make no length");
    return {};
  }
  if (count > static_cast<double>(kMaxMade)) {
    n.fail("a range of more than 2^24 elements", "make it an input");
    return {};
  }
  const auto size = static_cast<int64_t>(std::max(count, 0.0));
  Tensor tensor = Tensor::zeros(start.dtype, {size});
  for (int64_t i = 0; i < size; ++i) {
    if (real) tensor.set(i, start.at(0) + static_cast<double>(i) * step);
    else tensor.set_int(i, start.int_at(0) + i * delta.int_at(0));
  }
  return n.builder().add_constant(tensor);
}

constexpr double kNoLength = 0x1p62;  // NaN is not below it either

// ceil((limit - start) / delta), or 0 if that is negative.
Expr range_count(NodeImport& n, Val start, Val limit, Val delta) {
  const auto from = n.known(start), to = n.known(limit), by = n.known(delta);
  if (from && to && by && as_const(by->front())) {
    const int64_t step = *as_const(by->front());
    const Expr span = step > 0 ? to->front() - from->front() : from->front() - to->front();
    return n.simplified(max(Expr(0), ceil_div(n.simplified(span), std::abs(step))));
  }
  const auto wide = [&](Val v) { return n.reshape(n.cast(v, DType::f64), {}); };
  const Val step = n.only_where(
      wide(delta), n.binary(BinaryOp::ne, wide(delta), n.scalar(0, DType::f64)), "a delta of 0");
  Val count = n.unary(UnaryOp::ceil, n.div(n.sub(wide(limit), wide(start)), step));
  if (!n.failed() && is_float(n.dtype(limit)))
    count = n.only_where(count, n.less(count, n.scalar(kNoLength, DType::f64)),
                         "start, limit and delta that make no length");
  const std::vector<Expr> dims = n.dims(
      n.reshape(n.cast(n.max(n.scalar(0, DType::f64), count), DType::i64), {1}),
      "the length of the range");
  return dims.size() == 1 ? dims[0] : Expr(1);
}

}  // namespace

// start, start + delta, ... up to but not including limit
void import_range(NodeImport& n) {
  const Val x = n.in(0), y = n.in(1), z = n.in(2);
  const std::optional<Tensor> start = n.constant(x), limit = n.constant(y), delta = n.constant(z);
  if (n.failed()) return;
  for (const Val v : {x, y, z}) {
    Expr count = 1;
    for (const Expr& e : n.shape(v)) count = count * e;
    if (!is_const(n.simplified(count), 1))
      return n.invalid("start, limit and delta must be scalars");
  }
  if (delta && delta->at(0) == 0) return n.invalid("a delta of 0");
  if (start && limit && delta) return n.set(constant_range(n, *start, *limit, *delta));
  const DType type = n.dtype(x);
  const Expr count = range_count(n, x, y, z);
  if (n.failed()) return;
  const DType inner = is_float(type) ? DType::f64 : DType::i64;
  const auto single = [&](Val v) { return n.cast(n.reshape(v, {}), inner); };
  n.set(n.cast(n.add(n.mul(n.cast(positions(n, count, 1, 0), inner), single(z)), single(x)), type));
}

// `on` where the new axis equals the index, `off` elsewhere; negative indices count from the end
void import_one_hot(NodeImport& n) {
  const Val indices = n.cast(n.in(0), DType::i64), values = n.in(2),
            count = n.cast(n.in(1), DType::i64);
  if (n.failed()) return;
  const std::vector<Expr> depths = n.dims(n.within(n.reshape(count, {1}), 1, kMaxExtent, "depth"),
                                          "the depth");
  if (n.failed() || depths.size() != 1) return;
  const Expr& depth = depths[0];
  const int64_t rank = n.rank(indices) + 1, axis = n.axis(n.integer("axis", -1), rank);
  Shape shape = n.shape(indices);
  shape.insert(shape.begin() + axis, Expr(1));
  const Val plain = n.select(n.less(indices, integer(n, 0)), n.add(indices, integer(n, depth)),
                             indices);
  const Val hit = n.binary(BinaryOp::eq, n.reshape(plain, std::move(shape)),
                           positions(n, depth, rank, axis));
  const Val off = n.reshape(n.slice(values, 0, 0, 1), {}),
            on = n.reshape(n.slice(values, 0, 1, 1), {});
  n.set(n.select(hit, on, off));
}

// Keeps column - row <= k (lower) or >= k (upper) of the last two axes.
void import_trilu(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t rank = n.rank(x);
  if (!n.failed() && rank < 2) return n.invalid("Trilu needs a matrix");
  Val offset = n.has(1) ? n.reshape(n.cast(n.in(1), DType::i64), {}) : integer(n, 0);
  offset = n.max(integer(n, -kMaxDim), n.min(integer(n, kMaxDim), offset));  // no sum wraps
  const bool upper = n.integer("upper", 1) != 0;
  const Val column = positions(n, n.dim(x, rank - 1), 2, 1),
            row = n.add(positions(n, n.dim(x, rank - 2), 2, 0), offset);
  const Val keep = upper ? n.binary(BinaryOp::le, row, column)
                         : n.binary(BinaryOp::le, column, row);
  n.set(n.select(keep, x, n.scalar(0, x)));
}

void import_eye_like(NodeImport& n) {
  const Val x = n.in(0);
  if (!n.failed() && n.rank(x) != 2) return n.invalid("EyeLike needs a matrix");
  const int64_t k = std::clamp<int64_t>(n.integer("k", 0), -kMaxDim, kMaxDim),
                to = n.integer("dtype", 0);
  const std::optional<DType> dtype = n.has_attribute("dtype")
                                         ? dtype_from_onnx(static_cast<int>(to))
                                         : n.dtype(x);
  if (!dtype)
    return n.fail("dtype " + element_type_name(static_cast<int>(to)),
                  "convert the model to float32 or an integer type");
  const Val row = n.add(positions(n, n.dim(x, 0), 2, 0), integer(n, k));
  n.set(n.cast(n.binary(BinaryOp::eq, row, positions(n, n.dim(x, 1), 2, 1)), *dtype));
}

}  // namespace tw::onnx_import
