// Shape values as tensors, and storing in another physical layout.
#include "ir/graph/ops/common.h"

namespace tw {

Expected<TensorType> infer_shape_of(const OpAttrs&, const Types& in) {
  return TensorType{DType::i64, {static_cast<int64_t>(in[0]->shape.size())}, {}};
}

Expected<Tensor> evaluate_shape_of(const OpAttrs&, const TensorType&, const Tensors& in) {
  const std::vector<int64_t>& shape = in[0]->shape;
  return tensor_of(DType::i64, {static_cast<int64_t>(shape.size())}, shape);
}

Expected<TensorType> infer_dim_vector(const OpAttrs& attrs, const Types&) {
  const op::DimVector& dims = std::get<op::DimVector>(attrs);
  for (const Expr& value : dims.values) TW_TRY(check_dim_expr(value));
  if (dims.scalar && dims.values.size() != 1)
    return make_error(DiagCode::invalid_model, "a scalar of {0} values, expected 1",
                      dims.values.size());
  if (dims.scalar) return TensorType{DType::i64, {}, {}};
  return TensorType{DType::i64, {static_cast<int64_t>(dims.values.size())}, {}};
}

Expected<Tensor> evaluate_dim_vector(const OpAttrs& attrs, const TensorType& out, const Tensors&) {
  return tensor_of(DType::i64, extents(out.shape), extents(std::get<op::DimVector>(attrs).values));
}

Expected<TensorType> infer_layout_cast(const OpAttrs& attrs, const Types& in) {
  const op::LayoutCast& cast = std::get<op::LayoutCast>(attrs);
  TensorType out = *in[0];
  if (cast.block < 0 || cast.block > 4096)
    return make_error(DiagCode::invalid_model, "block is {0}, expected 0 to 4096", cast.block);
  if (cast.block == 0) {
    out.layout = {};
    return out;
  }
  if (cast.axis < 0 || cast.axis >= static_cast<int64_t>(out.shape.size()))
    return make_error(DiagCode::invalid_model, "axis {0} of a tensor of rank {1}", cast.axis,
                      out.shape.size());
  out.layout = {static_cast<int>(cast.axis), cast.block};
  return out;
}

Expected<Tensor> evaluate_layout_cast(const OpAttrs&, const TensorType&, const Tensors& in) {
  return *in[0];
}

}  // namespace tw
