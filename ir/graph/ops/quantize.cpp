// ONNX's QuantizeLinear and DequantizeLinear, for a whole tensor or along one axis, and lookups in
// byte tables.
#include <cmath>

#include "ir/graph/ops/common.h"
#include "ir/storage_types.h"

namespace tw {
namespace {

bool is_real(DType t) { return t == DType::f32 || t == DType::f64; }

// Requires a scalar, or one number for each index of the axis.
Error check_parameter(size_t index, const char* role, const TensorType& t, const TensorType& x,
                      int64_t axis) {
  if (t.shape.empty()) return Error::success();
  TW_TRY(check_rank(index, role, t, 1));
  if (is_const(t.shape[0], 1)) return Error::success();
  TW_ASSIGN(const size_t at, checked_axis(axis, x.shape.size()));
  return check_dim(index, role, "elements", t.shape[0], x.shape[at]);
}

Error check_parameters(const Types& in, DType quantized, int64_t axis) {
  if (!is_int(quantized) || dtype_bytes(quantized) > 4)
    return make_error(DiagCode::invalid_model,
                      "quantized type {0}, expected i8 to i32 or u8 to u32", dtype_name(quantized));
  if (!is_real(in[1]->dtype))
    return input_error(1, "scale", "{0}, expected f32", dtype_name(in[1]->dtype));
  TW_TRY(check_parameter(1, "scale", *in[1], *in[0], axis));
  if (!present(in, 2)) return Error::success();
  TW_TRY(check_dtype(2, "zero_point", *in[2], quantized));
  return check_parameter(2, "zero_point", *in[2], *in[0], axis);
}

// Calls fn(element, scale, zero point) for every element. `Real` is the type in which compiled code
// computes.
template <class Real, class Fn>
void each(const Tensors& in, int64_t axis, Fn fn) {
  const Tensor &x = *in[0], &scale = *in[1];
  int64_t inner = 1, count = 1;
  // Otherwise the axis has no meaning
  if (scale.size() > 1 || (present(in, 2) && in[2]->size() > 1)) {
    const int64_t rank = static_cast<int64_t>(x.shape.size()), at = axis < 0 ? axis + rank : axis;
    count = x.shape[static_cast<size_t>(at)];
    for (int64_t i = at + 1; i < rank; ++i) inner *= x.shape[static_cast<size_t>(i)];
  }
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = i / inner % count;
    fn(i, static_cast<Real>(scale.at(scale.size() == 1 ? 0 : c)),
       present(in, 2) ? in[2]->int_at(in[2]->size() == 1 ? 0 : c) : 0);
  }
}

template <class Real>
Tensor quantized(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  Tensor y = Tensor::zeros(out.dtype, in[0]->shape);
  each<Real>(in, std::get<op::Quantize>(attrs).axis, [&](int64_t i, Real scale, int64_t zero) {
    const Real rounded = std::nearbyint(static_cast<Real>(in[0]->at(i)) / scale);
    y.set(i, std::isnan(rounded) ? 0.0 : static_cast<double>(rounded) + static_cast<double>(zero));
  });
  return y;
}

template <class Real>
Tensor dequantized(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  Tensor y = Tensor::zeros(out.dtype, in[0]->shape);
  each<Real>(in, std::get<op::Dequantize>(attrs).axis, [&](int64_t i, Real scale, int64_t zero) {
    y.set(i, static_cast<double>(static_cast<Real>(in[0]->int_at(i) - zero) * scale));
  });
  return y;
}

}  // namespace

Expected<TensorType> infer_quantize(const OpAttrs& attrs, const Types& in) {
  const op::Quantize& quantize = std::get<op::Quantize>(attrs);
  if (!is_real(in[0]->dtype))
    return input_error(0, "x", "{0}, expected f32", dtype_name(in[0]->dtype));
  TW_TRY(check_parameters(in, quantize.to, quantize.axis));
  TW_TRY(check_dtype(1, "scale", *in[1], in[0]->dtype));
  return TensorType{quantize.to, in[0]->shape, {}};
}

Expected<Tensor> evaluate_quantize(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  return in[0]->dtype == DType::f32 ? quantized<float>(attrs, out, in)
                                    : quantized<double>(attrs, out, in);
}

Expected<TensorType> infer_dequantize(const OpAttrs& attrs, const Types& in) {
  TW_TRY(check_parameters(in, in[0]->dtype, std::get<op::Dequantize>(attrs).axis));
  return TensorType{in[1]->dtype, in[0]->shape, {}};
}

Expected<Tensor> evaluate_dequantize(const OpAttrs& attrs, const TensorType& out,
                                     const Tensors& in) {
  return out.dtype == DType::f32 ? dequantized<float>(attrs, out, in)
                                 : dequantized<double>(attrs, out, in);
}

Expected<TensorType> infer_lookup(const OpAttrs&, const Types& in) {
  if (!is_int(in[0]->dtype) || dtype_bits(in[0]->dtype) != 8)
    return input_error(0, "x", "{0}, expected i8 or u8", dtype_name(in[0]->dtype));
  TW_TRY(check_rank(1, "table", *in[1], 1));
  TW_TRY(check_dim(1, "table", "elements", in[1]->shape[0], Expr(256)));
  return TensorType{in[1]->dtype, in[0]->shape, {}};
}

Expected<Tensor> evaluate_lookup(const OpAttrs&, const TensorType& out, const Tensors& in) {
  const Tensor &x = *in[0], &table = *in[1];
  Tensor y = Tensor::zeros(out.dtype, x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t at = x.int_at(i) - lowest_of(x.dtype);
    if (is_int(out.dtype)) y.set_int(i, table.int_at(at));
    else y.set(i, table.at(at));
  }
  return y;
}

}  // namespace tw
