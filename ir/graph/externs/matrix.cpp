// det: floats [.., n, n] -> the determinants [..], scratch. Sums are in double.
#include "ir/graph/externs/common.h"

namespace tw {

Expected<std::vector<TensorType>> infer_det(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 1, 1));
  TW_TRY(check_counts(attrs, 0, 0, 0));
  TensorType x = *in[0];
  if (!is_float(x.dtype))
    return input_error(0, "x", "{0}, expected a float type", dtype_name(x.dtype));
  if (x.shape.size() < 2)
    return input_error(0, "x", "rank {0}, expected at least 2", x.shape.size());
  const Expr n = x.shape.back();
  TW_TRY(check_dim(0, "x", "rows", x.shape[x.shape.size() - 2], n));
  x.shape.resize(x.shape.size() - 2);
  return std::vector<TensorType>{std::move(x), scratch(n * n)};
}

}  // namespace tw
