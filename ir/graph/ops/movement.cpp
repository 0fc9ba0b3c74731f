// Data movement by index tables: transpose, reshape, expand, concat, slice, gather, pad. It copies
// bytes and never converts them.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ir/graph/ops/common.h"
#include "ir/scalar_ops.h"

namespace tw {
namespace {

// Index tables that copy x unchanged. Callers modify some axes.
IndexTables identity_tables(const Tensor& x) {
  std::vector<int64_t> strides = row_major_strides(x.shape);
  IndexTables tables(x.shape.size());
  for (size_t axis = 0; axis < tables.size(); ++axis)
    for (int64_t i = 0; i < x.shape[axis]; ++i) tables[axis].push_back(i * strides[axis]);
  return tables;
}

Error check_extents(const char* what, const Shape& shape, size_t count) {
  if (shape.size() != count)
    return make_error(DiagCode::invalid_model, "{0} has {1} entries, expected {2}", what,
                      shape.size(), count);
  for (const Expr& e : shape) {
    TW_TRY(check_dim_expr(e));
    std::optional<int64_t> value = as_const(e);
    if (value && (*value < 0 || *value > int64_t{1} << 40))
      return make_error(DiagCode::invalid_model, "{0} has an entry of {1}, expected 0 to 2^40",
                        what, *value);
  }
  return Error::success();
}

Shape simplified(const Shape& shape) {
  Shape out;
  for (const Expr& dim : shape) out.push_back(simplify_dim(dim));
  return out;
}

// constant becomes nullopt when it exceeds 64 bits.
void flatten_product(const Expr& e, std::vector<Expr>& factors, std::optional<int64_t>& constant) {
  if (std::optional<int64_t> value = as_const(e)) {
    int64_t product = 0;
    constant = constant && !__builtin_mul_overflow(*constant, *value, &product)
                   ? std::optional(product)
                   : std::nullopt;
  } else if (const auto* product = as_binary(e, BinaryOp::mul)) {
    flatten_product(product->a, factors, constant);
    flatten_product(product->b, factors, constant);
  } else factors.push_back(e);
}

}  // namespace

std::string count_text(const Shape& shape) {
  std::vector<Expr> factors;
  std::optional<int64_t> constant = 1;
  for (const Expr& dim : shape) flatten_product(simplify_dim(dim), factors, constant);
  return constant ? to_string(element_count(shape)) : "more than 2^63";
}

std::optional<std::pair<Expr, Expr>> counts_without_common_factors(const Shape& a, const Shape& b) {
  std::vector<Expr> left, right;
  std::optional<int64_t> left_constant = 1, right_constant = 1;
  for (const Expr& dim : a) flatten_product(simplify_dim(dim), left, left_constant);
  for (const Expr& dim : b) flatten_product(simplify_dim(dim), right, right_constant);
  if (!left_constant || !right_constant) return std::nullopt;
  if (left_constant == 0 || right_constant == 0)
    return std::pair(element_count(a), element_count(b));
  for (size_t i = 0; i < left.size();) {
    auto match = std::ranges::find_if(right, [&](const Expr& e) { return equal(e, left[i]); });
    if (match == right.end()) {
      ++i;
      continue;
    }
    right.erase(match);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const int64_t common = std::gcd(*left_constant, *right_constant);
  left.push_back(*left_constant / common);
  right.push_back(*right_constant / common);
  return std::pair(element_count(left), element_count(right));
}

bool same_count(const Shape& a, const Shape& b) {
  const auto counts = counts_without_common_factors(a, b);
  return counts && equal(Shape{counts->first}, Shape{counts->second});
}

Expected<TensorType> infer_transpose(const OpAttrs& attrs, const Types& in) {
  const Ints& perm = std::get<op::Transpose>(attrs).perm;
  const Shape& x = in[0]->shape;
  if (perm.size() != x.size())
    return make_error(DiagCode::invalid_model, "perm has {0} entries, expected {1}", perm.size(),
                      x.size());
  TensorType out{in[0]->dtype, {}, {}};
  std::vector<bool> seen(x.size());
  for (int64_t axis : perm) {
    bool valid = axis >= 0 && axis < static_cast<int64_t>(x.size()) &&
                 !seen[static_cast<size_t>(axis)];
    if (!valid)
      return make_error(DiagCode::invalid_model, "perm is not a permutation of 0 to {0}: entry {1}",
                        x.size() - 1, axis);
    seen[static_cast<size_t>(axis)] = true;
    out.shape.push_back(x[static_cast<size_t>(axis)]);
  }
  return out;
}

Expected<Tensor> evaluate_transpose(const OpAttrs& attrs, const TensorType&, const Tensors& in) {
  IndexTables from = identity_tables(*in[0]), tables;
  for (int64_t axis : std::get<op::Transpose>(attrs).perm)
    tables.push_back(from[static_cast<size_t>(axis)]);
  return gather_tables(*in[0], tables);
}

Expected<TensorType> infer_reshape(const OpAttrs& attrs, const Types& in) {
  const Shape& shape = std::get<op::Reshape>(attrs).shape;
  TW_TRY(check_extents("shape", shape, shape.size()));
  const auto counts = counts_without_common_factors(in[0]->shape, shape);
  if (!counts || !may_be_equal(counts->first, counts->second))
    return input_error(0, "x", "{0} cannot be reshaped to {1}: {2} elements, expected {3}",
                       to_string(*in[0]), to_string(shape), count_text(in[0]->shape),
                       count_text(shape));
  return TensorType{in[0]->dtype, simplified(shape), {}};
}

Expected<Tensor> evaluate_reshape(const OpAttrs&, const TensorType& out, const Tensors& in) {
  return Tensor{out.dtype, extents(out.shape), in[0]->bytes};
}

Expected<TensorType> infer_expand(const OpAttrs& attrs, const Types& in) {
  const auto& [shape, exact] = std::get<op::Expand>(attrs);
  TW_TRY(check_extents("shape", shape, shape.size()));
  const Shape& x = in[0]->shape;
  constexpr const char* kMisfit = "{0} does not broadcast to {1}";
  if (exact ? x.size() != shape.size() : x.size() > shape.size())
    return input_error(0, "x", kMisfit, to_string(x), to_string(shape));
  for (size_t i = 0; i < x.size(); ++i) {
    const Expr& to = shape[shape.size() - x.size() + i];
    const bool fits = equal(Shape{x[i]}, Shape{to}) ||
                      (exact ? may_be_equal(x[i], to)
                             : is_const(x[i], 1) || (is_data_dependent(to) && !as_const(x[i])));
    if (!fits) return unequal_input(0, "x", x[i], to, kMisfit, to_string(x), to_string(shape));
  }
  return TensorType{in[0]->dtype, simplified(shape), {}};
}

Expected<Tensor> evaluate_expand(const OpAttrs&, const TensorType& out, const Tensors& in) {
  std::vector<int64_t> shape = extents(out.shape), strides = broadcast_strides(in[0]->shape, shape);
  IndexTables tables(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis)
    for (int64_t i = 0; i < shape[axis]; ++i) tables[axis].push_back(i * strides[axis]);
  return gather_tables(*in[0], tables);
}

Expected<TensorType> infer_concat(const OpAttrs& attrs, const Types& in) {
  size_t rank = in[0]->shape.size();
  TW_ASSIGN(size_t axis, checked_axis(std::get<op::Concat>(attrs).axis, rank));
  TensorType out = *in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    if (!in[i]) return make_error(DiagCode::invalid_model, "input {0} is absent", i);
    TW_TRY(check_dtype(i, "x", *in[i], out.dtype));
    TW_TRY(check_rank(i, "x", *in[i], rank));
    for (size_t k = 0; k < rank; ++k) {
      if (k != axis && !equal(Shape{in[i]->shape[k]}, Shape{out.shape[k]}))
        return unequal_input(i, "x", in[i]->shape[k], out.shape[k], "axis {0} of {1}, expected {2}",
                             k, to_string(*in[i]), to_string(out.shape[k]));
    }
    out.shape[axis] = out.shape[axis] + in[i]->shape[axis];
  }
  if (in.size() > 1) out.shape[axis] = simplify_dim(out.shape[axis]);
  return out;
}

Expected<Tensor> evaluate_concat(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  TW_ASSIGN(size_t axis, checked_axis(std::get<op::Concat>(attrs).axis, y.shape.size()));
  size_t inner = static_cast<size_t>(
      element_count(std::span<const int64_t>(y.shape).subspan(axis + 1)) * dtype_bytes(y.dtype));
  size_t row = inner * static_cast<size_t>(y.shape[axis]), at = 0;
  if (y.bytes.empty()) return y;
  for (const Tensor* x : in) {
    size_t piece = inner * static_cast<size_t>(x->shape[axis]);
    if (piece)
      for (size_t from = 0, to = at; from < x->bytes.size(); from += piece, to += row)
        std::memcpy(&y.bytes[to], &x->bytes[from], piece);
    at += piece;
  }
  return y;
}

Expected<TensorType> infer_slice(const OpAttrs& attrs, const Types& in) {
  const op::Slice& slice = std::get<op::Slice>(attrs);
  const Shape& x = in[0]->shape;
  TW_TRY(check_extents("starts", slice.starts, x.size()));
  TW_TRY(check_extents("sizes", slice.sizes, x.size()));
  TW_TRY(check_ints("steps", slice.steps, x.size(), -(1 << 20)));
  for (size_t i = 0; i < x.size(); ++i) {
    if (slice.steps[i] == 0) return make_error(DiagCode::invalid_model, "axis {0}: a step of 0", i);
    if (is_const(slice.sizes[i], 0)) continue;
    Expr last = simplify_dim(slice.starts[i] + (slice.sizes[i] - 1) * slice.steps[i]);
    for (const Expr& at : {simplify_dim(slice.starts[i]), last}) {
      // An unknown size may be 0, and then one index before the start is fine.
      bool outside = as_const(at).value_or(0) < 0 ||
                     as_const(simplify_dim(x[i] - 1 - at)).value_or(0) <
                         (as_const(slice.sizes[i]) ? 0 : -1);
      if (outside)
        return make_error(DiagCode::invalid_model, "axis {0}: index {1} of an extent of {2}", i,
                          to_string(at), to_string(x[i]));
    }
  }
  return TensorType{in[0]->dtype, simplified(slice.sizes), {}};
}

Expected<Tensor> evaluate_slice(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::Slice& slice = std::get<op::Slice>(attrs);
  std::vector<int64_t> shape = extents(out.shape), starts = extents(slice.starts);
  IndexTables from = identity_tables(*in[0]), tables(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis)
    for (int64_t i = 0; i < shape[axis]; ++i)
      tables[axis].push_back(from[axis][static_cast<size_t>(starts[axis] + i * slice.steps[axis])]);
  return gather_tables(*in[0], tables);
}

Expected<TensorType> infer_gather(const OpAttrs& attrs, const Types& in) {
  const TensorType &x = *in[0], &indices = *in[1];
  if (indices.dtype != DType::i32 && indices.dtype != DType::i64)
    return input_error(1, "indices", "{0}, expected i32 or i64", dtype_name(indices.dtype));
  TW_ASSIGN(size_t axis, checked_axis(std::get<op::Gather>(attrs).axis, x.shape.size()));
  TensorType out{x.dtype, x.shape, {}};
  auto at = out.shape.erase(out.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  out.shape.insert(at, indices.shape.begin(), indices.shape.end());
  return out;
}

Expected<Tensor> evaluate_gather(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const Tensor &x = *in[0], &indices = *in[1];
  const bool clamp = std::get<op::Gather>(attrs).clamp;
  TW_ASSIGN(size_t axis, checked_axis(std::get<op::Gather>(attrs).axis, x.shape.size()));
  int64_t extent = x.shape[axis];
  IndexTables tables = identity_tables(x);
  std::vector<int64_t> whole = std::move(tables[axis]);
  tables[axis].clear();
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t index = indices.int_at(i);
    if (extent == 0 || (!clamp && (index < -extent || index >= extent)))
      return make_error(DiagCode::invalid_argument, "index {0}, expected {1} to {2}", index,
                        -extent, extent - 1);
    tables[axis].push_back(whole[static_cast<size_t>(
        std::clamp<int64_t>(index < 0 ? index + extent : index, 0, extent - 1))]);
  }
  Tensor y = gather_tables(x, tables);
  y.shape = extents(out.shape);
  return y;
}

Expected<TensorType> infer_pad(const OpAttrs& attrs, const Types& in) {
  const op::Pad& pad = std::get<op::Pad>(attrs);
  TensorType out = *in[0];
  TW_TRY(check_extents("begins", pad.begins, out.shape.size()));
  TW_TRY(check_extents("ends", pad.ends, out.shape.size()));
  if (present(in, 1)) {
    TW_TRY(check_dtype(1, "value", *in[1], out.dtype));
    TW_TRY(check_rank(1, "value", *in[1], 0));
  }
  for (size_t i = 0; i < out.shape.size(); ++i) {
    Expr grown = simplify_dim(out.shape[i] + pad.begins[i] + pad.ends[i]);
    if (pad.mode != PadMode::constant && is_const(out.shape[i], 0) && !is_const(grown, 0))
      return input_error(0, "x", "axis {0} of {1} is empty, expected elements to pad with", i,
                         to_string(*in[0]));
    out.shape[i] = grown;
  }
  return out;
}

// The index in [0, extent) that position `at` of the padded axis shows; -1: the pad value
static int64_t padded_source(PadMode mode, int64_t at, int64_t extent) {
  bool inside = at >= 0 && at < extent;
  switch (mode) {
    case PadMode::constant: return inside ? at : -1;
    case PadMode::edge: return std::clamp<int64_t>(at, 0, extent - 1);
    case PadMode::wrap: return floor_mod_int(at, extent);
    case PadMode::reflect: {
      if (extent == 1) return 0;
      int64_t phase = floor_mod_int(at, 2 * (extent - 1));
      return phase < extent ? phase : 2 * (extent - 1) - phase;
    }
  }
  TW_UNREACHABLE("bad pad mode");
}

Expected<Tensor> evaluate_pad(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::Pad& pad = std::get<op::Pad>(attrs);
  const Tensor& x = *in[0];
  std::vector<int64_t> shape = extents(out.shape), begins = extents(pad.begins),
                       strides = row_major_strides(x.shape);
  IndexTables tables(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis)
    for (int64_t i = 0; i < shape[axis]; ++i) {
      int64_t from = padded_source(pad.mode, i - begins[axis], x.shape[axis]);
      tables[axis].push_back(from < 0 ? -1 : from * strides[axis]);
    }
  return gather_tables(
      x, tables,
      present(in, 1) ? std::span<const std::byte>(in[1]->bytes) : std::span<const std::byte>());
}

}  // namespace tw
