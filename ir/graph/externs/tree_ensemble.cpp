// tree_ensemble: x [rows, features] (f32, f64), nodes i32[n, 6], splits [n], roots i32[trees],
// target of each weight i32[w], weights [w], members of set tests [m] -> [rows, targets] in x's
// type, scratch. All numbers have x's type. ints: how the weights of the trees' leaves are joined
// (0 average, 1 sum, 2 least, 3 most). dims: targets. runtime/ops/tree_ensemble.c documents the
// node table.
#include "ir/graph/externs/common.h"

namespace tw {

Expected<std::vector<TensorType>> infer_tree_ensemble(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 7, 7));
  TW_TRY(check_counts(attrs, 1, 0, 1));
  TW_TRY(check_choice(attrs, 0, 4, "aggregate"));
  const TensorType& x = *in[0];
  if (x.dtype != DType::f32 && x.dtype != DType::f64)
    return input_error(0, "x", "{0}, expected f32 or f64", dtype_name(x.dtype));
  TW_TRY(check_rank(0, "x", x, 2));
  const auto check = [&](int index, const char* name, DType dtype, size_t rank) -> Error {
    TW_TRY(check_dtype(index, name, *in[static_cast<size_t>(index)], dtype));
    return check_rank(index, name, *in[static_cast<size_t>(index)], rank);
  };
  TW_TRY(check(1, "nodes", DType::i32, 2));
  TW_TRY(check(2, "splits", x.dtype, 1));
  TW_TRY(check(3, "roots", DType::i32, 1));
  TW_TRY(check(4, "targets", DType::i32, 1));
  TW_TRY(check(5, "weights", x.dtype, 1));
  TW_TRY(check(6, "members", x.dtype, 1));
  TW_TRY(check_dim(1, "nodes", "columns", in[1]->shape[1], 6));
  TW_TRY(check_dim(2, "splits", "entries", in[2]->shape[0], in[1]->shape[0]));
  TW_TRY(check_dim(4, "targets", "entries", in[4]->shape[0], in[5]->shape[0]));
  const auto targets = as_const(simplify_dim(attrs.dims[0]));
  if (!targets || *targets < 1 || *targets > (int64_t{1} << 24))
    return make_error(DiagCode::invalid_model, "{0} targets", to_string(attrs.dims[0]));
  return std::vector<TensorType>{{x.dtype, {x.shape[0], *targets}, {}}, scratch(*targets)};
}

}  // namespace tw
