// topk: x -> the largest or smallest elements of each row along an axis, their places (i64),
// scratch. ints: axis, largest, sorted. dims: k. Of equal elements the one at the lower place comes
// first. A NaN is larger than all numbers.
#include "ir/graph/externs/common.h"

namespace tw {

Expected<std::vector<TensorType>> infer_topk(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 1, 1));
  TW_TRY(check_counts(attrs, 3, 0, 1));
  TW_TRY(check_choice(attrs, 1, 2, "largest"));
  TW_TRY(check_choice(attrs, 2, 2, "sorted"));
  const TensorType& x = *in[0];
  TW_ASSIGN(const size_t axis, axis_entry(attrs, 0, x.shape.size()));
  const Expr k = simplify_dim(attrs.dims[0]);
  const auto wanted = as_const(k), given = as_const(x.shape[axis]);
  if (wanted && (*wanted < 0 || (given && *wanted > *given)))
    return make_error(DiagCode::invalid_model,
                      "k is {0}, expected at most the {1} elements along axis {2}", *wanted,
                      to_string(x.shape[axis]), axis);
  TensorType values = x;
  values.shape[axis] = k;
  TensorType places{DType::i64, values.shape, {}};
  return std::vector<TensorType>{std::move(values), std::move(places), scratch(k * Expr(2))};
}

}  // namespace tw
