#include "frontend/onnx/ops/ml/ml.h"

#include <cmath>
#include <numeric>

#include "frontend/onnx/ops/strings/strings.h"

namespace tw::onnx_import::ml {
namespace {

// exp(v - max) over the sum of all; elements that are 0 stay 0, and a row of zeros becomes halves.
Val softmax_zero(NodeImport& n, Val scores) {
  const Val zero = n.scalar(0, scores), tiny = n.scalar(1e-7, scores);
  const Val most = n.reduce(ReduceKind::max, scores, {1}, true);
  const Val kept = n.mul(scores, n.unary(UnaryOp::exp, n.unary(UnaryOp::neg, most)));
  const Val part = n.select(n.less(tiny, n.unary(UnaryOp::abs, scores)),
                            n.unary(UnaryOp::exp, n.sub(scores, most)), kept);
  const Val sum = n.reduce(ReduceKind::sum, part, {1}, true);
  return n.select(n.binary(BinaryOp::eq, sum, zero), n.scalar(0.5, scores), n.div(part, sum));
}

// sqrt(2) erfinv(2v - 1), by Winitzki's approximation of erfinv, as in the standard's reference.
Val probit(NodeImport& n, Val scores) {
  constexpr double a = 0.147;
  const auto number = [&](double value) { return n.scalar(value, scores); };
  const Val one = number(1), x = n.sub(n.mul(scores, number(2)), one);
  const Val log = n.unary(UnaryOp::log, n.mul(n.sub(one, x), n.add(one, x)));
  const Val v = n.add(number(2 / (M_PI * a)), n.mul(log, number(0.5)));
  const Val root = n.unary(
      UnaryOp::sqrt,
      n.sub(n.unary(UnaryOp::sqrt, n.sub(n.mul(v, v), n.mul(log, number(1 / a)))), v));
  return n.mul(number(std::sqrt(2.0)),
               n.select(n.less(x, number(0)), n.unary(UnaryOp::neg, root), root));
}

}  // namespace

PostTransform read_post_transform(NodeImport& n) {
  const std::string text = n.text("post_transform", "NONE");
  const char* const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (text == names[i]) return static_cast<PostTransform>(i);
  n.invalid("attribute post_transform is '" + text + "'");
  return PostTransform::none;
}

Val transformed(NodeImport& n, PostTransform transform, Val scores) {
  if (n.failed()) return {};
  switch (transform) {
    case PostTransform::none: return scores;
    case PostTransform::logistic: return n.unary(UnaryOp::sigmoid, scores);
    case PostTransform::softmax: return n.emit(op::Softmax{1, false}, {scores});
    case PostTransform::softmax_zero: return softmax_zero(n, scores);
    case PostTransform::probit: return probit(n, scores);
  }
  TW_UNREACHABLE("post transform");
}

Val matrix(NodeImport& n, Val x, DType dtype) {
  if (n.failed()) return {};
  if (n.rank(x) != 1 && n.rank(x) != 2) {
    n.invalid(
        llvm::formatv("input 0 has rank {0}, expected [rows, features] or [features]", n.rank(x))
            .str());
    return {};
  }
  return n.cast(n.rank(x) == 1 ? n.reshape(x, {1, n.dim(x, 0)}) : x, dtype);
}

Val constant(NodeImport& n, const std::vector<float>& values, const Shape& shape) {
  const auto dims = static_shape(shape);
  TW_CHECK(dims && element_count(*dims) == static_cast<int64_t>(values.size()),
           "{0} values for {1}", values.size(), to_string(shape));
  Tensor tensor = Tensor::zeros(DType::f32, *dims);
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return n.builder().add_constant(tensor);
}

Val constant(NodeImport& n, const Ints& values, const Shape& shape) {
  const auto dims = static_shape(shape);
  TW_CHECK(dims && element_count(*dims) == static_cast<int64_t>(values.size()),
           "{0} values for {1}", values.size(), to_string(shape));
  Tensor tensor = Tensor::zeros(DType::i64, *dims);
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return n.builder().add_constant(tensor);
}

Val row(NodeImport& n, const std::vector<float>& values) {
  return constant(n, values, {1, static_cast<int64_t>(values.size())});
}

void set_classes(NodeImport& n, Val labels, Val scores) {
  const auto texts = n.texts("classlabels_strings");
  if (n.wanted(0) && texts && !texts->empty())
    labels = n.emit(op::Gather{0},
                    {string_constant(n, *texts, {Expr(std::ssize(*texts))}), labels});
  if (n.wanted(0)) n.set(0, labels);
  n.set(1, scores);
}

Ints class_labels(NodeImport& n, const char* integers, const char* strings) {
  const auto texts = n.texts(strings);
  if (!texts || texts->empty()) return n.integers(integers).value_or(Ints());
  Ints numbers(texts->size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace tw::onnx_import::ml
