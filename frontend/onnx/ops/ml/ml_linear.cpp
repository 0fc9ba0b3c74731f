// Importers of linear models and support vector machines of ai.onnx.ml: products with constant
// matrices, and operations on the scores.
#include <algorithm>

#include "frontend/onnx/ops/ml/ml.h"
#include "ir/graph/externs.h"

namespace tw::onnx_import {
namespace {

using namespace ml;

constexpr int64_t kMaxClasses = 4096;

Val argmax(NodeImport& n, Val scores) {
  return n.emit(op::ArgReduce{false, 1, false, false}, {scores});
}
Val labels_of(NodeImport& n, const Ints& labels, Val index) {
  return n.emit(op::Gather{0, true},
                {constant(n, labels, {static_cast<int64_t>(labels.size())}), index});
}

// x weights' + offsets; `weights` has `rows` rows with as many columns as x.
Val scores_of(NodeImport& n, Val x, const std::vector<float>& weights, int64_t rows,
              const std::vector<float>& offsets) {
  if (n.failed()) return {};
  const int64_t features = n.need_static_dim(x, 1, "the number of features");
  if (n.failed()) return {};
  if (rows < 1 || rows > kMaxClasses || features * rows != static_cast<int64_t>(weights.size())) {
    n.invalid(llvm::formatv("{0} coefficients for {1} targets of {2} features", weights.size(),
                            rows, features)
                  .str());
    return {};
  }
  if (!offsets.empty() && static_cast<int64_t>(offsets.size()) != rows) {
    n.invalid(llvm::formatv("{0} intercepts for {1} targets", offsets.size(), rows).str());
    return {};
  }
  const Val scores = n.emit(op::MatMul{false, true}, {x, constant(n, weights, {rows, features})});
  return offsets.empty() ? scores : n.add(scores, row(n, offsets));
}

// The scores of two classes from one: it belongs to the second class, its negative to the first.
Val both(NodeImport& n, Val score) {
  return n.emit(op::Concat{1}, {n.unary(UnaryOp::neg, score), score});
}

}  // namespace

void import_ml_linear_regressor(NodeImport& n) {
  const Val x = matrix(n, n.in(0), DType::f32);
  const PostTransform transform = read_post_transform(n);
  const Val scores = scores_of(n, x, n.reals("coefficients").value_or(std::vector<float>()),
                               n.integer("targets", 1),
                               n.reals("intercepts").value_or(std::vector<float>()));
  n.set(transformed(n, transform, scores));
}

// As in the standard's reference: two labels and one row of coefficients give the scores -s and s.
void import_ml_linear_classifier(NodeImport& n) {
  const Val x = matrix(n, n.in(0), DType::f32);
  const PostTransform transform = read_post_transform(n);
  Ints labels = class_labels(n, "classlabels_ints", "classlabels_strings");
  const std::vector<float> weights = n.reals("coefficients").value_or(std::vector<float>()),
                           offsets = n.reals("intercepts").value_or(std::vector<float>());
  const int64_t features = n.need_static_dim(x, 1, "the number of features");
  if (n.failed()) return;
  const auto targets = features > 0 ? static_cast<int64_t>(weights.size()) / features : 0;
  Val scores = scores_of(n, x, weights, targets, offsets);
  if (targets == 1 && labels.size() == 2) scores = both(n, scores);
  scores = transformed(n, transform, scores);
  if (n.failed()) return;
  const int64_t classes = n.need_static_dim(scores, 1, "the number of classes");
  if (classes > 1) {
    if (labels.empty())
      for (int64_t i = 0; i < classes; ++i) labels.push_back(i);
    if (static_cast<int64_t>(labels.size()) != classes)
      return n.invalid(llvm::formatv("{0} labels for {1} classes", labels.size(), classes).str());
    return set_classes(n, labels_of(n, labels, argmax(n, scores)), scores);
  }
  const Val flat = n.reshape(scores, {n.dim(scores, 0)});
  const Val low = n.less(flat, n.scalar(transform == PostTransform::none ? 0 : 0.5, flat));
  const double label = labels.empty() ? 1 : static_cast<double>(labels[0]);
  set_classes(n, n.select(low, n.scalar(0, DType::i64), n.scalar(label, DType::i64)), scores);
}

namespace {

struct Kernel {
  std::string type;
  double gamma = 0, coef0 = 0, degree = 0;
};

Kernel read_kernel(NodeImport& n) {
  Kernel kernel{n.text("kernel_type", "LINEAR")};
  const std::vector<float> given = n.reals("kernel_params").value_or(std::vector<float>());
  if (!given.empty() && given.size() != 3)
    n.invalid("kernel_params are not three: gamma, coef0, degree");
  if (given.size() == 3) kernel.gamma = given[0], kernel.coef0 = given[1], kernel.degree = given[2];
  if (kernel.type != "LINEAR" && kernel.type != "POLY" && kernel.type != "RBF" &&
      kernel.type != "SIGMOID")
    n.invalid("attribute kernel_type is '" + kernel.type + "'");
  return kernel;
}

// The kernel of every row of x with every vector: [rows, vectors].
Val kernel_values(NodeImport& n, const Kernel& kernel, Val x, const std::vector<float>& vectors,
                  int64_t count) {
  if (n.failed()) return {};
  const int64_t features = n.need_static_dim(x, 1, "the number of features");
  if (n.failed()) return {};
  if (features * count != static_cast<int64_t>(vectors.size())) {
    n.invalid(llvm::formatv("{0} numbers for {1} support vectors of {2} features", vectors.size(),
                            count, features)
                  .str());
    return {};
  }
  const auto number = [&](double value) { return n.scalar(value, DType::f32); };
  if (kernel.type == "RBF") {  // differences, as |a|^2 - 2ab + |b|^2 would cancel
    const Val difference = n.sub(n.reshape(x, {n.dim(x, 0), 1, features}),
                                 constant(n, vectors, {1, count, features}));
    return n.unary(UnaryOp::exp,
                   n.mul(number(-kernel.gamma),
                         n.reduce(ReduceKind::sum, n.mul(difference, difference), {2}, false)));
  }
  const Val product = n.emit(op::MatMul{false, true}, {x, constant(n, vectors, {count, features})});
  if (kernel.type == "LINEAR") return product;
  const Val line = n.add(n.mul(product, number(kernel.gamma)), number(kernel.coef0));
  return kernel.type == "SIGMOID" ? n.unary(UnaryOp::tanh, line)
                                  : n.binary(BinaryOp::pow, line, number(kernel.degree));
}

}  // namespace

void import_ml_svm_regressor(NodeImport& n) {
  const Val x = matrix(n, n.in(0), DType::f32);
  const PostTransform transform = read_post_transform(n);
  const int64_t supports = n.integer("n_supports", 0);
  const std::vector<float> weights = n.reals("coefficients").value_or(std::vector<float>()),
                           rho = n.reals("rho").value_or(std::vector<float>());
  Kernel kernel = read_kernel(n);
  if (n.failed()) return;
  if (rho.empty()) return n.invalid("attribute rho is empty");
  Val score;
  if (supports > 0) {
    if (supports != static_cast<int64_t>(weights.size()))
      return n.invalid(
          llvm::formatv("{0} coefficients for {1} support vectors", weights.size(), supports)
              .str());
    const Val values = kernel_values(
        n, kernel, x, n.reals("support_vectors").value_or(std::vector<float>()), supports);
    if (n.failed()) return;
    score = n.emit(op::MatMul{false, true}, {values, row(n, weights)});
  } else {
    score = scores_of(n, x, weights, 1, {});
  }
  if (n.failed()) return;
  score = n.add(score, n.scalar(rho[0], DType::f32));
  if (n.integer("one_class", 0) != 0)
    return n.set(
        n.select(n.less(n.scalar(0, score), score), n.scalar(1, score), n.scalar(-1, score)));
  n.set(transformed(n, transform, score));
}

namespace {

struct Classes {
  Ints vectors, starts;
  int64_t all = 0;
};  // support vectors of each class

Classes read_classes(NodeImport& n) {
  Classes classes;
  classes.vectors = n.integers("vectors_per_class").value_or(Ints());
  for (int64_t count : classes.vectors) {
    if (count < 0 || count > (1 << 24))
      n.invalid(llvm::formatv("{0} support vectors of a class", count).str());
    classes.starts.push_back(classes.all);
    classes.all += std::clamp<int64_t>(count, 0, 1 << 24);
  }
  if (static_cast<int64_t>(classes.vectors.size()) > kMaxClasses) n.fail("more than 4096 classes");
  return classes;
}

// The decision for every pair of classes i < j: [rows, pairs], above 0 for i. It is one product:
// the row of a pair holds the coefficients of its two classes' vectors against each other, and
// zeros.
Val pair_scores(NodeImport& n, const Classes& classes, Val kernels,
                const std::vector<float>& weights, const std::vector<float>& rho) {
  const auto count = static_cast<int64_t>(classes.vectors.size()), pairs = count * (count - 1) / 2;
  if (static_cast<int64_t>(weights.size()) != (count - 1) * classes.all ||
      static_cast<int64_t>(rho.size()) != pairs) {
    n.invalid(llvm::formatv("{0} coefficients and {1} rho for {2} classes of {3} support vectors",
                            weights.size(), rho.size(), count, classes.all)
                  .str());
    return {};
  }
  if (pairs * classes.all > (int64_t{1} << 28)) {
    n.fail("more than 2^28 coefficients of pairs of classes");
    return {};
  }
  std::vector<float> matrix(static_cast<size_t>(pairs * classes.all), 0.0f);
  int64_t pair = 0;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = i + 1; j < count; ++j, ++pair)
      for (const auto& [from, row] : {std::pair{i, j - 1}, std::pair{j, i}})
        for (int64_t v = 0, at = classes.starts[static_cast<size_t>(from)];
             v < classes.vectors[static_cast<size_t>(from)]; ++v, ++at)
          matrix[static_cast<size_t>(pair * classes.all + at)] =
              weights[static_cast<size_t>(row * classes.all + at)];
  return n.add(
      n.emit(op::MatMul{false, true}, {kernels, constant(n, matrix, {pairs, classes.all})}),
      row(n, rho));
}

// The number of pairs that each class wins: [rows, classes].
Val votes_of(NodeImport& n, int64_t count, Val scores) {
  const int64_t pairs = count * (count - 1) / 2;
  std::vector<float> change(static_cast<size_t>(pairs * count), 0.0f),
      lost(static_cast<size_t>(count), 0.0f);
  int64_t pair = 0;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = i + 1; j < count; ++j, ++pair) {
      change[static_cast<size_t>(pair * count + i)] = 1;
      change[static_cast<size_t>(pair * count + j)] = -1;
      lost[static_cast<size_t>(j)] += 1;
    }
  const Val won = n.cast(n.less(n.scalar(0, scores), scores), DType::f32);
  return n.add(n.emit(op::MatMul{}, {won, constant(n, change, {pairs, count})}), row(n, lost));
}

// The probabilities [rows, classes] from the decisions of the pairs. A sigmoid says how likely the
// first class of a pair is, of the two.
Val probabilities(NodeImport& n, int64_t count, Val decisions, const std::vector<float>& slopes,
                  const std::vector<float>& offsets) {
  const size_t pairs = static_cast<size_t>(count * (count - 1) / 2);
  if (slopes.size() != pairs || offsets.size() != pairs) {
    n.invalid(llvm::formatv("{0} prob_a and {1} prob_b for {2} pairs of classes", slopes.size(),
                            offsets.size(), pairs)
                  .str());
    return {};
  }
  const Val line = n.add(n.mul(decisions, row(n, slopes)), row(n, offsets));
  const auto number = [&](double value) { return n.scalar(value, DType::f32); };
  const Val first = n.binary(
      BinaryOp::min, n.max(n.unary(UnaryOp::sigmoid, n.unary(UnaryOp::neg, line)), number(1e-7)),
      number(1 - 1e-7));
  const std::vector<Val> made = n.emit_extern(ExternFunction::class_probabilities, {count}, {},
                                              {first});
  return made.empty() ? Val{} : made[0];
}

}  // namespace

// With probabilities, the scores are those of the classes. Without them they are the decisions of
// the pairs, and -s and s for two classes. Without support vectors, each class has a row of
// coefficients.
void import_ml_svm_classifier(NodeImport& n) {
  const Val x = matrix(n, n.in(0), DType::f32);
  const PostTransform transform = read_post_transform(n);
  const Kernel kernel = read_kernel(n);
  const Classes classes = read_classes(n);
  Ints labels = class_labels(n, "classlabels_ints", "classlabels_strings");
  const std::vector<float> weights = n.reals("coefficients").value_or(std::vector<float>()),
                           rho = n.reals("rho").value_or(std::vector<float>()),
                           slopes = n.reals("prob_a").value_or(std::vector<float>());
  if (n.failed()) return;
  if (rho.empty()) return n.invalid("attribute rho is empty");
  const auto count = classes.all > 0 ? static_cast<int64_t>(classes.vectors.size())
                                     : std::max<int64_t>(1, static_cast<int64_t>(labels.size()));
  if (labels.empty())
    for (int64_t i = 0; i < count; ++i) labels.push_back(i);
  if (static_cast<int64_t>(labels.size()) != count)
    return n.invalid(llvm::formatv("{0} labels for {1} classes", labels.size(), count).str());
  if (classes.all == 0) {
    const Val scores = n.add(scores_of(n, x, weights, count, {}), n.scalar(rho[0], DType::f32));
    const Val flat = n.reshape(scores, {element_count(n.shape(scores))});
    const Val best = count > 1 ? labels_of(n, labels, argmax(n, scores))
                               : n.cast(n.less(n.scalar(0, flat), flat), DType::i64);
    return set_classes(n, best, transformed(n, transform, scores));
  }
  const Val kernels = kernel_values(
      n, kernel, x, n.reals("support_vectors").value_or(std::vector<float>()), classes.all);
  if (n.failed()) return;
  if (count < 2) return n.invalid("support vectors of one class");
  Val scores = pair_scores(n, classes, kernels, weights, rho);
  if (n.failed()) return;
  const Val best = labels_of(n, labels, argmax(n, votes_of(n, count, scores)));
  if (!slopes.empty())
    scores = probabilities(n, count, scores, slopes,
                           n.reals("prob_b").value_or(std::vector<float>()));
  else if (count == 2) scores = both(n, scores);
  set_classes(n, best, transformed(n, transform, scores));
}

}  // namespace tw::onnx_import
