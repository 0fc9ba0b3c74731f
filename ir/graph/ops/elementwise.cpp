// Unary, binary, select, cast. Types follow ir/expr.h; ir/scalar_ops.h computes integers.
#include "ir/graph/ops/common.h"
#include "ir/scalar_ops.h"
#include "ir/storage_types.h"

namespace tw {
namespace {

const char* unary_domain(UnaryOp f, DType t) {  // null: the type is allowed
  if (is_storage_only(t)) return "a type of arithmetic";
  if (f == UnaryOp::logical_not) return t == DType::boolean ? nullptr : "bool";
  if (f == UnaryOp::bit_not) return is_int(t) ? nullptr : "an integer type";
  if (f == UnaryOp::neg || f == UnaryOp::abs || f == UnaryOp::sign)
    return t != DType::boolean ? nullptr : "a number type";
  if (f == UnaryOp::tf32) return t == DType::f32 ? nullptr : "f32";
  return is_float(t) ? nullptr : "a float type";
}
bool is_logical(BinaryOp f) {
  return f == BinaryOp::logical_and || f == BinaryOp::logical_or || f == BinaryOp::logical_xor;
}
bool is_bitwise(BinaryOp f) { return f >= BinaryOp::bit_and && f <= BinaryOp::shr; }
const char* binary_domain(BinaryOp f, DType t) {
  if (is_storage_only(t)) return "a type of arithmetic";
  if (is_logical(f)) return t == DType::boolean ? nullptr : "bool";
  if (is_bitwise(f)) return is_int(t) ? nullptr : "an integer type";
  return t != DType::boolean || f == BinaryOp::eq || f == BinaryOp::ne ? nullptr : "a number type";
}

int64_t int_unary(UnaryOp f, DType type, int64_t x) {
  bool negative = is_signed_int(type) && x < 0;
  int64_t negated = static_cast<int64_t>(-static_cast<uint64_t>(x));
  if (f == UnaryOp::neg) return negated;
  if (f == UnaryOp::abs) return negative ? negated : x;
  if (f == UnaryOp::sign) return negative ? -1 : x != 0;
  if (f == UnaryOp::bit_not) return ~x;
  if (f == UnaryOp::logical_not) return x == 0;
  TW_UNREACHABLE("{0} of an integer", op_name(f));
}

Expected<Shape> broadcast_all(const Types& inputs) {
  Shape shape;
  for (const TensorType* t : inputs) { TW_ASSIGN(shape, broadcast_shapes(shape, t->shape)); }
  return shape;
}

}  // namespace

Expected<TensorType> infer_unary(const OpAttrs& attrs, const Types& in) {
  UnaryOp f = std::get<op::Unary>(attrs).function;
  if (const char* wanted = unary_domain(f, in[0]->dtype))
    return input_error(0, "x", "{0} of {1}, expected {2}", op_name(f), dtype_name(in[0]->dtype),
                       wanted);
  TensorType out = *in[0];
  if (f == UnaryOp::is_nan || f == UnaryOp::is_inf) out.dtype = DType::boolean;
  return out;
}

Expected<Tensor> evaluate_unary(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  UnaryOp f = std::get<op::Unary>(attrs).function;
  const Tensor& x = *in[0];
  Tensor y = Tensor::zeros(out.dtype, x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (is_float(x.dtype)) y.set(i, float_unary(f, x.at(i)));
    else y.set_int(i, int_unary(f, x.dtype, x.int_at(i)));
  }
  return y;
}

Expected<TensorType> infer_binary(const OpAttrs& attrs, const Types& in) {
  BinaryOp f = std::get<op::Binary>(attrs).function;
  TW_TRY(check_dtype(1, "b", *in[1], in[0]->dtype));
  if (const char* wanted = binary_domain(f, in[0]->dtype))
    return make_error(DiagCode::invalid_model, "{0} of {1}, expected {2}", op_name(f),
                      dtype_name(in[0]->dtype), wanted);
  TW_ASSIGN(Shape shape, broadcast_all(in));
  return TensorType{is_comparison(f) ? DType::boolean : in[0]->dtype, std::move(shape), {}};
}

Expected<Tensor> evaluate_binary(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  BinaryOp f = std::get<op::Binary>(attrs).function;
  const Tensor &a = *in[0], &b = *in[1];
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  bool floats = is_float(a.dtype), zero_divisor = false;
  walk<2>(y.shape, {broadcast_strides(a.shape, y.shape), broadcast_strides(b.shape, y.shape)},
          [&](int64_t i, const std::array<int64_t, 2>& at) {
            if (floats) return y.set(i, float_binary(f, a.at(at[0]), b.at(at[1])));
            int64_t right = b.int_at(at[1]);
            bool undefined = divides(f) && right == 0;
            zero_divisor |= undefined;
            y.set_int(i, undefined ? 0 : int_binary(f, a.dtype, a.int_at(at[0]), right));
          });
  if (zero_divisor)
    return make_error(DiagCode::invalid_argument, "integer {0} by zero", op_name(f));
  return y;
}

Expected<TensorType> infer_select(const OpAttrs&, const Types& in) {
  TW_TRY(check_dtype(0, "condition", *in[0], DType::boolean));
  TW_TRY(check_dtype(2, "b", *in[2], in[1]->dtype));
  TW_ASSIGN(Shape shape, broadcast_all(in));
  return TensorType{in[1]->dtype, std::move(shape), {}};
}

Expected<Tensor> evaluate_select(const OpAttrs&, const TensorType& out, const Tensors& in) {
  const Tensor &condition = *in[0], &a = *in[1], &b = *in[2];
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  std::array<std::vector<int64_t>, 3> strides = {broadcast_strides(condition.shape, y.shape),
                                                 broadcast_strides(a.shape, y.shape),
                                                 broadcast_strides(b.shape, y.shape)};
  walk<3>(y.shape, strides, [&](int64_t i, const std::array<int64_t, 3>& at) {
    bool first = condition.int_at(at[0]) != 0;
    const Tensor& from = first ? a : b;
    int64_t flat = first ? at[1] : at[2];
    if (is_float(y.dtype)) y.set(i, from.at(flat));
    else y.set_int(i, from.int_at(flat));
  });
  return y;
}

Expected<TensorType> infer_cast(const OpAttrs& attrs, const Types& in) {
  TensorType out = *in[0];
  out.dtype = std::get<op::Cast>(attrs).to;
  return out;
}

Expected<Tensor> evaluate_cast(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  bool saturate = std::get<op::Cast>(attrs).saturate;
  const Tensor& x = *in[0];
  Tensor y = Tensor::zeros(out.dtype, x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (is_float(out.dtype)) y.set(i, round_to(out.dtype, x.at(i), saturate));
    else if (is_float(x.dtype)) y.set_int(i, float_to_int(out.dtype, x.at(i), saturate));
    else y.set_int(i, cast_int(out.dtype, x.dtype, x.int_at(i), saturate));
  }
  return y;
}

}  // namespace tw
