// Operators of ai.onnx.ml that prepare features: scaling, encoding, picking, filling in.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops/ml/ml.h"

namespace tw::onnx_import {
namespace {

// One value for all features, or one for each.
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

// Rows over their largest element, their sum of sizes, their length; rows where that is 0 stay.
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

// Elements of the last axis by position. A vector gives one row.
void import_ml_array_feature_extractor(NodeImport& n) {
  Val x = n.in(0), indices = n.in(1);
  if (n.failed()) return;
  if (n.rank(x) == 0) return n.invalid("input 0 has no axis");
  if (n.rank(x) == 1) x = n.reshape(x, {1, n.dim(x, 0)});
  indices = n.reshape(indices, {element_count(n.shape(indices))});
  n.set(n.emit(op::Gather{n.rank(x) - 1}, {x, indices}));
}

// Puts a value, or one a feature, where x is the value that stands for "missing", which may be NaN.
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

// The inputs side by side, each cut or filled with zeros to its width in inputdimensions. A vector
// of width 1 is a column, others are a row.
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

// x[..., 1] == categories. Elements of no category give zeros; the standard calls that an error
// unless `zeros` is 1.
void import_ml_one_hot_encoder(NodeImport& n) {
  const Val x = n.in(0);
  const Ints categories = ml::class_labels(n, "cats_int64s", "cats_strings");
  Ints sorted = categories;
  std::sort(sorted.begin(), sorted.end());
  if (n.failed()) return;
  if (categories.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return n.invalid("cats_int64s is empty or has a category twice");
  Shape shape = n.shape(x);
  shape.push_back(1);
  const Val hit = n.binary(BinaryOp::eq, n.cast(n.reshape(x, std::move(shape)), DType::i64),
                           ml::constant(n, categories, {static_cast<int64_t>(categories.size())}));
  n.set(n.cast(hit, DType::f32));
}

namespace {

// A list of numbers of LabelEncoder: as floats, as integers, or a tensor.
std::optional<Tensor> number_list(NodeImport& n, const std::string& stem) {
  const auto texts = n.texts((stem + "_strings").c_str());
  if (texts && !texts->empty()) {
    n.fail("attribute " + stem + "_strings", "encode the labels as numbers");
    return std::nullopt;
  }
  if (const OnnxTensor* given = n.tensor((stem + "_tensor").c_str())) {
    const auto dtype = given->dtype();
    if (dtype)
      return Tensor{*dtype,
                    {element_count(given->dims)},
                    {given->data.bytes.begin(), given->data.bytes.end()}};
    n.fail("attribute " + stem + "_tensor of dtype " + element_type_name(given->element_type),
           "encode the labels as numbers");
    return std::nullopt;
  }
  if (const auto reals = n.reals((stem + "_floats").c_str()); reals && !reals->empty()) {
    Tensor tensor = Tensor::zeros(DType::f32, {static_cast<int64_t>(reals->size())});
    std::copy(reals->begin(), reals->end(), tensor.as<float>().begin());
    return tensor;
  }
  const Ints integers = n.integers((stem + "_int64s").c_str()).value_or(Ints());
  Tensor tensor = Tensor::zeros(DType::i64, {static_cast<int64_t>(integers.size())});
  std::copy(integers.begin(), integers.end(), tensor.as<int64_t>().begin());
  return tensor;
}

// The same element type and the same value: NaN is one key.
bool same_key(const Tensor& keys, int64_t a, int64_t b) {
  const double x = keys.at(a), y = keys.at(b);
  return is_int(keys.dtype) ? keys.int_at(a) == keys.int_at(b)
                            : x == y || (std::isnan(x) && std::isnan(y));
}

void set_default(NodeImport& n, Tensor& values, int64_t at) {
  if (const OnnxTensor* given = n.tensor("default_tensor")) {
    if (given->dtype() != values.dtype || element_count(given->dims) != 1)
      return n.invalid("default_tensor is not one value of the values' type");
    std::copy(given->data.bytes.begin(), given->data.bytes.end(),
              values.bytes.begin() + at * dtype_bytes(values.dtype));
  } else if (is_float(values.dtype)) {
    values.set(at, n.real("default_float", -0.0));
  } else {
    values.set_int(at, n.integer("default_int64", -1));
  }
}

}  // namespace

// The value of the key that x is. Keys are compared with every element: meant for dozens to
// hundreds of them.
void import_ml_label_encoder(NodeImport& n) {
  const Val x = n.in(0);
  const auto keys = number_list(n, "keys"), values = number_list(n, "values");
  if (n.failed() || !keys || !values) return;
  const int64_t count = keys->size();
  if (count != values->size() || count == 0)
    return n.invalid(llvm::formatv("{0} keys and {1} values", count, values->size()).str());
  if (keys->dtype != n.dtype(x))
    return n.invalid(llvm::formatv("keys are {0}, the input is {1}", dtype_name(keys->dtype),
                                   dtype_name(n.dtype(x)))
                         .str());
  if (count > 4096) return n.fail("more than 4096 keys");
  std::vector<int64_t> kept;  // of equal keys the last counts
  for (int64_t i = 0; i < count; ++i) {
    bool last = true;
    for (int64_t j = i + 1; j < count && last; ++j) last = !same_key(*keys, i, j);
    if (last) kept.push_back(i);
  }
  const auto size = static_cast<int64_t>(kept.size());
  Tensor table = Tensor::zeros(keys->dtype, {size + 1}),
         results = Tensor::zeros(values->dtype, {size + 1}),
         nan = Tensor::zeros(DType::boolean, {size + 1}),
         otherwise = Tensor::zeros(DType::boolean, {size + 1});
  for (int64_t i = 0; i < size; ++i) {
    const auto from = static_cast<size_t>(kept[static_cast<size_t>(i)]),
               key_bytes = static_cast<size_t>(dtype_bytes(keys->dtype)),
               value_bytes = static_cast<size_t>(dtype_bytes(values->dtype));
    std::copy_n(keys->bytes.begin() + static_cast<int64_t>(from * key_bytes), key_bytes,
                table.bytes.begin() + i * static_cast<int64_t>(key_bytes));
    std::copy_n(values->bytes.begin() + static_cast<int64_t>(from * value_bytes), value_bytes,
                results.bytes.begin() + i * static_cast<int64_t>(value_bytes));
    nan.set_int(i, is_float(keys->dtype) && std::isnan(table.at(i)));
  }
  otherwise.set_int(size, 1);
  set_default(n, results, size);
  if (n.failed()) return;
  Shape shape = n.shape(x);
  shape.push_back(1);
  const Val each = n.reshape(x, std::move(shape));
  Val hit = n.binary(BinaryOp::logical_or,
                     n.binary(BinaryOp::eq, each, n.builder().add_constant(table)),
                     n.builder().add_constant(otherwise));
  if (is_float(keys->dtype))
    hit = n.binary(BinaryOp::logical_or, hit,
                   n.binary(BinaryOp::logical_and, n.unary(UnaryOp::is_nan, each),
                            n.builder().add_constant(nan)));
  const Val index = n.emit(op::ArgReduce{false, n.rank(each) - 1, false, false},
                           {n.cast(hit, DType::i32)});
  n.set(n.emit(op::Gather{0, true}, {n.builder().add_constant(results), index}));
}

}  // namespace tw::onnx_import
