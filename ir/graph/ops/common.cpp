#include "ir/graph/ops/common.h"

#include <algorithm>
#include <cstring>

#include "ir/storage_types.h"

namespace tw {

Error check_dtype(size_t index, const char* role, const TensorType& t, DType wanted) {
  if (t.dtype == wanted) return Error::success();
  return input_error(index, role, "{0}, expected {1}", dtype_name(t.dtype), dtype_name(wanted));
}

namespace {
bool is_narrow(DType t) { return is_int(t) && dtype_bytes(t) < 4 && !is_storage_only(t); }
}  // namespace

DType product_type(DType operand) { return is_narrow(operand) ? DType::i32 : operand; }

Error check_product_types(size_t index, const char* role, const TensorType& t, DType other) {
  if (is_narrow(t.dtype) && is_narrow(other)) return Error::success();
  return check_dtype(index, role, t, other);
}

Error check_zero(const char* what, int64_t zero, DType t) {
  if (zero == 0 || (is_narrow(t) && zero >= lowest_of(t) && zero <= highest_of(t)))
    return Error::success();
  return make_error(DiagCode::invalid_model, "{0} is {1}, which is no value of {2}", what, zero,
                    dtype_name(t));
}

Tensor less_zero(const Tensor& x, int64_t zero) {
  if (zero == 0) return x;
  Tensor y = Tensor::zeros(DType::i32, x.shape);
  for (int64_t i = 0; i < x.size(); ++i) y.set_int(i, x.int_at(i) - zero);
  return y;
}

Error check_rank(size_t index, const char* role, const TensorType& t, size_t rank) {
  if (t.shape.size() == rank) return Error::success();
  return input_error(index, role, "rank {0} of {1}, expected {2}", t.shape.size(), to_string(t),
                     rank);
}

Error check_dim(size_t index, const char* role, const char* what, const Expr& dim,
                const Expr& wanted) {
  if (equal(Shape{dim}, Shape{wanted})) return Error::success();
  return unequal_input(index, role, dim, wanted, "{0} {1}, expected {2}", to_string(dim), what,
                       to_string(simplify_dim(wanted)));
}

Error check_shape(size_t index, const char* role, const TensorType& t, const Shape& wanted) {
  constexpr const char* kText = "shape {0}, expected {1}";
  if (t.shape.size() != wanted.size())
    return input_error(index, role, kText, to_string(t.shape), to_string(wanted));
  for (size_t axis = 0; axis < wanted.size(); ++axis)
    if (!equal(Shape{t.shape[axis]}, Shape{wanted[axis]}))
      return unequal_input(index, role, t.shape[axis], wanted[axis], kText, to_string(t.shape),
                           to_string(wanted));
  return Error::success();
}

Error check_broadcast(size_t index, const char* role, const TensorType& t, const Shape& to) {
  constexpr const char* kText = "shape {0}, expected one that broadcasts to {1}";
  if (t.shape.size() > to.size())
    return input_error(index, role, kText, to_string(t.shape), to_string(to));
  for (size_t axis = 0; axis < t.shape.size(); ++axis) {
    const Expr &dim = t.shape[axis], &wanted = to[to.size() - t.shape.size() + axis];
    if (!is_const(dim, 1) && !equal(Shape{dim}, Shape{wanted}))
      return unequal_input(index, role, dim, wanted, kText, to_string(t.shape), to_string(to));
  }
  return Error::success();
}

Expected<size_t> checked_axis(int64_t axis, size_t rank) {
  int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    return make_error(DiagCode::invalid_model, "axis {0} of a tensor of rank {1}", axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

Error check_ints(const char* what, const Ints& list, size_t count, int64_t low) {
  if (list.size() != count)
    return make_error(DiagCode::invalid_model, "{0} has {1} entries, expected {2}", what,
                      list.size(), count);
  for (int64_t value : list)
    if (value < low || value > 1 << 20)
      return make_error(DiagCode::invalid_model, "{0} has an entry of {1}, expected {2} to 2^20",
                        what, value, low);
  return Error::success();
}

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::vector<int64_t> broadcast_strides(std::span<const int64_t> shape,
                                       std::span<const int64_t> out) {
  TW_CHECK(shape.size() <= out.size(), "rank {0} broadcast to {1}", shape.size(), out.size());
  std::vector<int64_t> own = row_major_strides(shape), strides(out.size(), 0);
  size_t missing = out.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) strides[i + missing] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

std::vector<int64_t> extents(const Shape& shape) {
  std::optional<std::vector<int64_t>> out = static_shape(shape);
  TW_CHECK(out.has_value(), "evaluating with the symbolic shape {0}", to_string(shape));
  return *out;
}

namespace {

template <class T>
void gather_as(const Tensor& x, const IndexTables& tables, const std::byte* fill, Tensor& out) {
  int64_t count = out.size();
  if (count == 0) return;
  size_t rank = tables.size();
  T outside{};
  if (fill) std::memcpy(&outside, fill, sizeof(T));
  const T* from = reinterpret_cast<const T*>(x.bytes.data());
  T* to = reinterpret_cast<T*>(out.bytes.data());
  if (rank == 0) {
    *to = *from;
    return;
  }
  std::vector<size_t> index(rank - 1);
  const std::vector<int64_t>& inner = tables.back();
  for (T* end = to + count; to != end;) {
    int64_t base = 0;
    bool inside = true;
    for (size_t axis = 0; axis + 1 < rank; ++axis) {
      int64_t step = tables[axis][index[axis]];
      inside &= step >= 0;
      base += step;
    }
    for (int64_t step : inner) *to++ = inside && step >= 0 ? from[base + step] : outside;
    for (size_t axis = rank - 1; axis-- > 0;) {
      if (++index[axis] < tables[axis].size()) break;
      index[axis] = 0;
    }
  }
}

}  // namespace

Tensor gather_tables(const Tensor& x, const IndexTables& tables, std::span<const std::byte> fill) {
  std::vector<int64_t> shape;
  for (const std::vector<int64_t>& table : tables)
    shape.push_back(static_cast<int64_t>(table.size()));
  Tensor out = Tensor::zeros(x.dtype, shape);
  const std::byte* outside = fill.empty() ? nullptr : fill.data();
  switch (dtype_bytes(x.dtype)) {
    case 1: gather_as<uint8_t>(x, tables, outside, out); break;
    case 2: gather_as<uint16_t>(x, tables, outside, out); break;
    case 4: gather_as<uint32_t>(x, tables, outside, out); break;
    case 8: gather_as<uint64_t>(x, tables, outside, out); break;
  }
  return out;
}

}  // namespace tw
