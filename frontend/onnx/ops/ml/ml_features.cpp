// Importers of ai.onnx.ml operators that prepare features: scaling, encoding, picking, filling in.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops/ml/ml.h"
#include "frontend/onnx/ops/strings/strings.h"

namespace tw::onnx_import {
namespace {

// A constant of one value for all features, or of one for each.
Val one_or_each(NodeImport& n, const std::vector<float>& values, Val x, const char* name) {
  const Expr features = n.dim(x, n.rank(x) - 1);
  if (values.size() != 1 &&
      (!as_const(features) || static_cast<int64_t>(values.size()) != *as_const(features))) {
    n.invalid(llvm::formatv("attribute {0} has {1} values for {2} features", name, values.size(),
                            to_string(features))
                  .str());
    return {};
  }
  return n.cast(ml::constant(n, values, {static_cast<int64_t>(values.size())}), n.dtype(x));
}

}  // namespace

// (x - offset) * scale
void import_ml_scaler(NodeImport& n) {
  Val x = n.in(0);
  if (n.dtype(x) != DType::f64) x = n.cast(x, DType::f32);
  if (const auto offset = n.reals("offset"); offset && !offset->empty() && !n.failed()) {
    const Val o = one_or_each(n, *offset, x, "offset");
    if (!n.failed()) x = n.sub(x, o);
  }
  if (const auto scale = n.reals("scale"); scale && !scale->empty() && !n.failed()) {
    const Val s = one_or_each(n, *scale, x, "scale");
    if (!n.failed()) x = n.mul(x, s);
  }
  if (!n.failed()) n.set(n.cast(x, DType::f32));
}

// Divides each row by its largest element, its sum of magnitudes, or its length. If the divisor is
// 0, the row stays.
void import_ml_normalizer(NodeImport& n) {
  const Val given = n.in(0);
  const std::string norm = n.text("norm", "MAX");
  const Val x = ml::matrix(n, given, DType::f32);
  if (n.failed()) return;
  Val size;
  if (norm == "MAX") size = n.reduce(ReduceKind::max, x, {1}, true);
  else if (norm == "L1") size = n.reduce(ReduceKind::sum, n.unary(UnaryOp::abs, x), {1}, true);
  else if (norm == "L2")
    size = n.unary(UnaryOp::sqrt, n.reduce(ReduceKind::sum, n.mul(x, x), {1}, true));
  else return n.invalid("attribute norm is '" + norm + "'");
  const Val whole = n.select(n.binary(BinaryOp::eq, size, n.scalar(0, size)), n.scalar(1, size),
                             size);
  n.set(n.reshape(n.div(x, whole), n.shape(given)));
}

void import_ml_binarizer(NodeImport& n) {
  const Val x = n.in(0);
  const Val wide = n.dtype(x) == DType::f32 ? x : n.cast(x, DType::f64);
  n.set(n.cast(n.less(n.scalar(n.real("threshold", 0), wide), wide), n.dtype(x)));
}

// Picks elements of the last axis by position. A vector counts as one row.
void import_ml_array_feature_extractor(NodeImport& n) {
  Val x = n.in(0), indices = n.in(1);
  if (n.failed()) return;
  if (n.rank(x) == 0) return n.invalid("input 0 has no axis");
  if (n.rank(x) == 1) x = n.reshape(x, {1, n.dim(x, 0)});
  indices = n.reshape(indices, {element_count(n.shape(indices))});
  n.set(n.emit(op::Gather{n.rank(x) - 1}, {x, indices}));
}

// Replaces the value that stands for "missing", which may be NaN, by one value, or by one for each
// feature.
void import_ml_imputer(NodeImport& n) {
  const Val x = n.in(0);
  const auto reals = n.reals("imputed_value_floats");
  const auto integers = n.integers("imputed_value_int64s");
  if (n.failed()) return;
  std::vector<float> values = reals.value_or(std::vector<float>());
  const bool real = !values.empty();
  if (!real && integers) values.assign(integers->begin(), integers->end());
  if (values.empty()) return n.invalid("neither imputed_value_floats nor imputed_value_int64s");
  if (n.rank(x) < 1) return n.invalid("input 0 has no axis");
  const Val filled = one_or_each(n, values, x, "imputed_value");
  if (n.failed()) return;
  const double missing = real ? n.real("replaced_value_float", 0)
                              : static_cast<double>(n.integer("replaced_value_int64", 0));
  if (std::isnan(missing) && !is_float(n.dtype(x))) return n.set(x);
  n.set(n.select(std::isnan(missing) ? n.unary(UnaryOp::is_nan, x)
                                     : n.binary(BinaryOp::eq, x, n.scalar(missing, x)),
                 filled, x));
}

// Joins the inputs side by side, each cut or filled with zeros to its width in inputdimensions. A
// vector with width 1 is a column, another one a row.
void import_ml_feature_vectorizer(NodeImport& n) {
  const Ints widths = n.integers("inputdimensions").value_or(Ints());
  if (widths.size() != n.input_count())
    return n.invalid(
        llvm::formatv("{0} inputdimensions for {1} inputs", widths.size(), n.input_count()).str());
  std::vector<Val> parts;
  for (size_t i = 0; i < widths.size() && !n.failed(); ++i) {
    Val x = n.in(i);
    if (n.rank(x) == 1 && widths[i] == 1) x = n.reshape(x, {n.dim(x, 0), 1});
    x = ml::matrix(n, x, DType::f32);
    const int64_t extent = n.need_static_dim(x, 1, "FeatureVectorizer"), width = widths[i];
    if (n.failed()) return;
    if (width < 0 || width > (int64_t{1} << 24))
      return n.invalid(llvm::formatv("a width of {0} in inputdimensions", width).str());
    if (width < extent) x = n.slice(x, 1, 0, width);
    if (width > extent) x = n.emit(op::Pad{PadMode::constant, {0, 0}, {0, width - extent}}, {x});
    parts.push_back(x);
  }
  if (n.failed() || parts.empty()) return n.invalid("no inputs");
  n.set(parts.size() == 1 ? parts[0] : n.emit(op::Concat{1}, std::move(parts)));
}

// x[..., 1] == categories. An element of no category gives zeros; the standard calls that an error
// unless `zeros` is 1.
void import_ml_one_hot_encoder(NodeImport& n) {
  const Val x = n.in(0);
  const Ints categories = ml::class_labels(n, "cats_int64s", "cats_strings");
  Ints sorted = categories;
  std::sort(sorted.begin(), sorted.end());
  if (n.failed()) return;
  if ((n.dtype(x) == DType::string) != n.has_attribute("cats_strings"))
    return n.invalid(std::string("the input is ") + dtype_name(n.dtype(x)) +
                     ", the categories are not");
  if (categories.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return n.invalid("cats_int64s is empty or has a category twice");
  Shape shape = n.shape(x);
  shape.push_back(1);
  const Val numbers = n.dtype(x) == DType::string ? string_places(n, x, *n.texts("cats_strings"))
                                                  : n.cast(x, DType::i64);
  const Val hit = n.binary(BinaryOp::eq, n.reshape(numbers, std::move(shape)),
                           ml::constant(n, categories, {static_cast<int64_t>(categories.size())}));
  n.set(n.cast(hit, DType::f32));
}

}  // namespace tw::onnx_import
