// Importers of losses over classes: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "frontend/onnx/ops/attention/attention_core.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

// The loss of logarithms of probabilities [N, C, d...] and classes [N, d...]. An ignored target
// counts nothing, and neither does its weight in the mean.
Val loss_of(NodeImport& n, Val x, Val target, Val weight) {
  const std::string reduction = n.text("reduction", "mean");
  if (n.failed()) return {};
  if (n.rank(x) < 2 || n.rank(target) != n.rank(x) - 1) {
    n.invalid(llvm::formatv("scores of shape {0} for classes of shape {1}", to_string(n.shape(x)),
                            to_string(n.shape(target)))
                  .str());
    return {};
  }
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    n.invalid("attribute reduction is '" + reduction + "'");
    return {};
  }
  for (int64_t i = 0; i < n.rank(target); ++i)
    target = n.with_extent(target, i, n.dim(x, i == 0 ? 0 : i + 1));
  if (weight.valid() && n.rank(weight) == 1) weight = n.with_extent(weight, 0, n.dim(x, 1));
  target = n.cast(target, DType::i64);
  if (n.failed()) return {};
  Val ignored;
  if (n.has_attribute("ignore_index")) {
    const Expr index(n.integer("ignore_index", 0));
    ignored = n.binary(BinaryOp::eq, target, n.builder().known({index}, DType::i64, {}));
    target = n.select(ignored, integer(n, 0), target);
  }
  target = n.within(target, 0, n.dim(x, 1) - Expr(1), "class");
  if (n.failed()) return {};
  Shape one = n.shape(x);
  one[1] = 1;
  const Val hit = n.binary(BinaryOp::eq, positions(n, n.dim(x, 1), n.rank(x), 1),
                           n.reshape(target, one));
  Val loss = n.unary(UnaryOp::neg,
                     n.reduce(ReduceKind::sum, n.select(hit, x, n.scalar(0, x)), {1}, false)),
      counted;
  if (ignored.valid()) {
    const Val zero = n.scalar(0, x);
    counted = n.select(ignored, zero,
                       weight.valid() ? n.emit(op::Gather{0}, {weight, target}) : n.scalar(1, x));
    loss = n.select(ignored, zero, weight.valid() ? n.mul(loss, counted) : loss);
  } else if (weight.valid()) {
    counted = n.emit(op::Gather{0}, {weight, target});
    loss = n.mul(loss, counted);
  }
  if (reduction == "none") return loss;
  Ints all;
  for (int64_t i = 0; i < n.rank(target); ++i) all.push_back(i);
  if (reduction == "mean" && !counted.valid()) return n.reduce(ReduceKind::mean, loss, all, false);
  const Val sum = n.reduce(ReduceKind::sum, loss, all, false);
  return reduction == "sum" ? sum : n.div(sum, n.reduce(ReduceKind::sum, counted, all, false));
}

}  // namespace

void import_nll_loss(NodeImport& n) {
  const Val x = n.in(0), target = n.in(1);
  n.set(loss_of(n, x, target, n.maybe(2)));
}

// Output 1 is the logarithms of the probabilities.
void import_cross_entropy(NodeImport& n) {
  const Val x = n.in(0), target = n.in(1);
  if (!n.failed() && n.rank(x) < 2) return n.invalid("scores without classes");
  const Val logarithms = n.failed() ? Val{} : n.emit(op::Softmax{1, true}, {x});
  n.set(loss_of(n, logarithms, target, n.maybe(2)));
  n.set(1, logarithms);
}

}  // namespace tw::onnx_import
