// class_probabilities: f32 [rows, pairs], the likelihood of the first class in each pair -> f32
// [rows, classes], scratch. ints: classes. Pairs are in the order (0, 1), (0, 2), ..., (1, 2).
#include "ir/graph/externs/common.h"

namespace tw {

Expected<std::vector<TensorType>> infer_class_probabilities(const op::Extern& attrs,
                                                            const Types& in) {
  constexpr int64_t kMostClasses = 4096;
  TW_TRY(check_inputs(in, 1, 1));
  TW_TRY(check_counts(attrs, 1, 0, 0));
  const int64_t classes = attrs.ints[0];
  if (classes < 2 || classes > kMostClasses)
    return make_error(DiagCode::invalid_model, "{0} classes, expected 2 to {1}", classes,
                      kMostClasses);
  const TensorType& x = *in[0];
  if (x.dtype != DType::f32 || x.shape.size() != 2)
    return input_error(0, "pairs", "{0}, expected f32[rows, pairs]", to_string(x));
  TW_TRY(check_dim(0, "pairs", "pairs of classes", x.shape[1], Expr(classes * (classes - 1) / 2)));
  return std::vector<TensorType>{{DType::f32, {x.shape[0], Expr(classes)}, {}},
                                 scratch(Expr(classes * (classes + 2)))};
}

}  // namespace tw
