// Softmax, layer normalisation and batch normalisation, with sums in double.
#include <cmath>
#include <limits>

#include "ir/graph/ops/common.h"
#include "ir/scalar_ops.h"

namespace tw {
namespace {

Error check_float(const TensorType& x) {
  if (is_float(x.dtype)) return Error::success();
  return input_error(0, "x", "{0}, expected a float type", dtype_name(x.dtype));
}

}  // namespace

Expected<TensorType> infer_softmax(const OpAttrs& attrs, const Types& in) {
  TW_TRY(check_float(*in[0]));
  const op::Softmax& softmax = std::get<op::Softmax>(attrs);
  TW_TRY(checked_axis(softmax.axis, in[0]->shape.size()).takeError());
  if (softmax.log && softmax.masked)
    return make_error(DiagCode::invalid_model,
                      "a masked log-softmax: a row of nothing but -inf has no logarithm");
  return *in[0];
}

Expected<Tensor> evaluate_softmax(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::Softmax& softmax = std::get<op::Softmax>(attrs);
  const Tensor& x = *in[0];
  TW_ASSIGN(size_t axis, checked_axis(softmax.axis, x.shape.size()));
  Tensor y = Tensor::zeros(out.dtype, x.shape);
  int64_t extent = x.shape[axis],
          inner = element_count(std::span<const int64_t>(x.shape).subspan(axis + 1));
  if (y.size() == 0) return y;
  for (int64_t line = 0; line < y.size() / extent; ++line) {
    int64_t base = line / inner * extent * inner + line % inner;
    double top = x.at(base), sum = 0;
    for (int64_t i = 1; i < extent; ++i)
      top = float_binary(BinaryOp::max, top, x.at(base + i * inner));
    if (softmax.masked && top == -std::numeric_limits<double>::infinity()) continue;
    for (int64_t i = 0; i < extent; ++i) sum += std::exp(x.at(base + i * inner) - top);
    for (int64_t i = 0; i < extent; ++i) {
      double shifted = x.at(base + i * inner) - top;
      y.set(base + i * inner, softmax.log ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  }
  return y;
}

Expected<TensorType> infer_layer_norm(const OpAttrs& attrs, const Types& in) {
  TW_TRY(check_float(*in[0]));
  TW_ASSIGN(size_t axis, checked_axis(std::get<op::LayerNorm>(attrs).axis, in[0]->shape.size()));
  Shape normalized(in[0]->shape.begin() + static_cast<std::ptrdiff_t>(axis), in[0]->shape.end());
  constexpr const char* kRoles[] = {"x", "scale", "bias"};
  for (size_t i = 1; i < in.size(); ++i) {
    if (!in[i]) continue;
    TW_TRY(check_dtype(i, kRoles[i], *in[i], in[0]->dtype));
    TW_TRY(check_broadcast(i, kRoles[i], *in[i], normalized));
  }
  return *in[0];
}

Expected<Tensor> evaluate_layer_norm(const OpAttrs& attrs, const TensorType& out,
                                     const Tensors& in) {
  const op::LayerNorm& norm = std::get<op::LayerNorm>(attrs);
  const Tensor& x = *in[0];
  TW_ASSIGN(size_t axis, checked_axis(norm.axis, x.shape.size()));
  std::span<const int64_t> tail = std::span<const int64_t>(x.shape).subspan(axis);
  int64_t extent = element_count(tail);
  Tensor y = Tensor::zeros(out.dtype, x.shape);
  const Tensor *scale = in[1], *bias = present(in, 2) ? in[2] : nullptr;
  std::vector<int64_t> none(tail.size(), 0);
  std::array<std::vector<int64_t>, 2> strides = {
      broadcast_strides(scale->shape, tail), bias ? broadcast_strides(bias->shape, tail) : none};
  for (int64_t base = 0; base < y.size(); base += extent) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < extent; ++i) sum += x.at(base + i);
    double mean = norm.centred ? sum / static_cast<double>(extent) : 0;
    for (int64_t i = 0; i < extent; ++i)
      squares += (x.at(base + i) - mean) * (x.at(base + i) - mean);
    double factor = 1 / std::sqrt(squares / static_cast<double>(extent) + norm.epsilon);
    walk<2>(tail, strides, [&](int64_t i, const std::array<int64_t, 2>& at) {
      double offset = bias ? bias->at(at[1]) : 0;
      y.set(base + i, (x.at(base + i) - mean) * factor * scale->at(at[0]) + offset);
    });
  }
  return y;
}

Expected<TensorType> infer_batch_norm(const OpAttrs&, const Types& in) {
  TW_TRY(check_float(*in[0]));
  if (in[0]->shape.size() < 2)
    return input_error(0, "x", "rank {0} of {1}, expected at least 2", in[0]->shape.size(),
                       to_string(*in[0]));
  constexpr const char* kRoles[] = {"x", "scale", "bias", "mean", "variance"};
  for (size_t i = 1; i < 5; ++i) {
    TW_TRY(check_dtype(i, kRoles[i], *in[i], in[0]->dtype));
    TW_TRY(check_rank(i, kRoles[i], *in[i], 1));
    TW_TRY(check_dim(i, kRoles[i], "elements", in[i]->shape[0], in[0]->shape[1]));
  }
  return *in[0];
}

Expected<Tensor> evaluate_batch_norm(const OpAttrs& attrs, const TensorType& out,
                                     const Tensors& in) {
  const Tensor &x = *in[0], &scale = *in[1], &bias = *in[2], &mean = *in[3], &variance = *in[4];
  double epsilon = std::get<op::BatchNorm>(attrs).epsilon;
  Tensor y = Tensor::zeros(out.dtype, x.shape);
  int64_t channels = x.shape[1],
          inner = element_count(std::span<const int64_t>(x.shape).subspan(2));
  for (int64_t i = 0; i < y.size(); ++i) {
    int64_t c = i / inner % channels;
    y.set(i,
          (x.at(i) - mean.at(c)) / std::sqrt(variance.at(c) + epsilon) * scale.at(c) + bias.at(c));
  }
  return y;
}

}  // namespace tw
