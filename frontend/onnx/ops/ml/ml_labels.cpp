// Importers of the label operators of ai.onnx.ml: numbers and strings that stand for others.
#include <algorithm>
#include <cmath>
#include <map>

#include "frontend/onnx/ops/ml/ml.h"
#include "frontend/onnx/ops/strings/strings.h"
#include "ir/graph/strings.h"

namespace tw::onnx_import {
namespace {

// Keys or values: numbers, or strings if `numbers` is absent.
struct Labels {
  std::optional<Tensor> numbers;
  std::vector<std::string> texts;
  int64_t size() const { return numbers ? numbers->size() : std::ssize(texts); }
};

Tensor numbers_of(const Ints& values) {
  Tensor tensor = Tensor::zeros(DType::i64, {std::ssize(values)});
  std::ranges::copy(values, tensor.as<int64_t>().begin());
  return tensor;
}

// Reads strings, floats or integers, or a tensor.
Labels read_labels(NodeImport& n, const std::string& stem) {
  if (auto texts = n.texts((stem + "_strings").c_str()); texts && !texts->empty())
    return {std::nullopt, std::move(*texts)};
  if (const OnnxTensor* given = n.tensor((stem + "_tensor").c_str())) {
    const auto dtype = given->dtype();
    if (dtype == DType::string) return {std::nullopt, unpacked_strings(given->data.bytes)};
    if (dtype)
      return {Tensor{*dtype,
                     {element_count(given->dims)},
                     {given->data.bytes.begin(), given->data.bytes.end()}},
              {}};
    n.fail("attribute " + stem + "_tensor of dtype " + element_type_name(given->element_type),
           "encode the labels as numbers or strings");
    return {};
  }
  if (const auto reals = n.reals((stem + "_floats").c_str()); reals && !reals->empty()) {
    Tensor tensor = Tensor::zeros(DType::f32, {std::ssize(*reals)});
    std::ranges::copy(*reals, tensor.as<float>().begin());
    return {std::move(tensor), {}};
  }
  return {numbers_of(n.integers((stem + "_int64s").c_str()).value_or(Ints())), {}};
}

// True if both keys have the same value; NaN equals NaN.
bool same_key(const Tensor& keys, int64_t a, int64_t b) {
  const double x = keys.at(a), y = keys.at(b);
  return is_int(keys.dtype) ? keys.int_at(a) == keys.int_at(b)
                            : x == y || (std::isnan(x) && std::isnan(y));
}

// The place of each number among the keys, or the number of keys if it is none of them. Each
// element is compared with all keys, which suits up to some hundreds. Among equal keys the last one
// counts.
Val number_places(NodeImport& n, Val x, const Tensor& keys) {
  const int64_t count = keys.size();
  if (count > 4096) n.fail("more than 4096 keys that are numbers");
  if (n.failed()) return {};
  const auto flags = [&](const auto& holds) {
    Tensor list = Tensor::zeros(DType::boolean, {count + 1});
    for (int64_t i = 0; i <= count; ++i) list.set_int(i, holds(i));
    return n.builder().add_constant(list);
  };
  const auto hidden = [&](int64_t i) {  // a later key is equal
    for (int64_t j = i + 1; j < count; ++j)
      if (same_key(keys, i, j)) return true;
    return false;
  };
  Tensor table = Tensor::zeros(keys.dtype, {count + 1});
  std::ranges::copy(keys.bytes, table.bytes.begin());
  Shape shape = n.shape(x);
  shape.push_back(1);
  const Val each = n.reshape(x, std::move(shape));
  Val hit = n.binary(BinaryOp::eq, each, n.builder().add_constant(table));
  if (is_float(keys.dtype))
    hit = n.binary(BinaryOp::logical_or, hit,
                   n.binary(BinaryOp::logical_and, n.unary(UnaryOp::is_nan, each),
                            flags([&](auto i) { return i < count && std::isnan(keys.at(i)); })));
  hit = n.binary(BinaryOp::logical_and, hit,
                 flags([&](auto i) { return i < count && !hidden(i); }));
  hit = n.binary(BinaryOp::logical_or, hit, flags([&](auto i) { return i == count; }));
  return n.emit(op::ArgReduce{false, n.rank(each) - 1, false, false}, {n.cast(hit, DType::i32)});
}

// The place of each string among the keys, or the number of keys if it is none of them.
Val text_places(NodeImport& n, Val x, const std::vector<std::string>& keys) {
  const Val place = string_places(n, x, keys);
  if (n.failed()) return {};
  const Val none = n.scalar(static_cast<double>(keys.size()), DType::i64);
  return n.select(n.less(place, n.scalar(0, DType::i64)), none, place);
}

// The values, followed by the default.
Val value_table(NodeImport& n, const Labels& values) {
  const OnnxTensor* given = n.tensor("default_tensor");
  if (given && (given->dtype() != (values.numbers ? values.numbers->dtype : DType::string) ||
                element_count(given->dims) != 1)) {
    n.invalid("default_tensor is not one value of the values' type");
    return {};
  }
  if (!values.numbers) {
    std::vector<std::string> all = values.texts;
    all.push_back(given ? unpacked_strings(given->data.bytes)[0]
                        : n.text("default_string", "_Unused"));
    return string_constant(n, all, {Expr(std::ssize(all))});
  }
  const int64_t count = values.size();
  Tensor table = Tensor::zeros(values.numbers->dtype, {count + 1});
  std::ranges::copy(values.numbers->bytes, table.bytes.begin());
  if (given)
    std::ranges::copy(given->data.bytes, table.bytes.begin() + count * dtype_bytes(table.dtype));
  else if (is_float(table.dtype)) table.set(count, n.real("default_float", -0.0));
  else table.set_int(count, n.integer("default_int64", -1));
  return n.builder().add_constant(table);
}

void encode(NodeImport& n, const Labels& keys, const Labels& values) {
  const Val x = n.in(0);
  if (n.failed()) return;
  if (keys.size() != values.size() || keys.size() == 0)
    return n.invalid(llvm::formatv("{0} keys and {1} values", keys.size(), values.size()).str());
  const DType type = keys.numbers ? keys.numbers->dtype : DType::string;
  if (type != n.dtype(x))
    return n.invalid(
        llvm::formatv("keys are {0}, the input is {1}", dtype_name(type), dtype_name(n.dtype(x)))
            .str());
  const Val places = keys.numbers ? number_places(n, x, *keys.numbers)
                                  : text_places(n, x, keys.texts);
  const Val table = value_table(n, values);
  if (!n.failed()) n.set(n.emit(op::Gather{0, true}, {table, places}));
}

}  // namespace

void import_ml_label_encoder(NodeImport& n) {
  encode(n, read_labels(n, "keys"), read_labels(n, "values"));
}

// Maps strings to integers or back; the type of the input decides.
void import_ml_category_mapper(NodeImport& n) {
  const Val x = n.in(0);
  Labels texts{std::nullopt, n.texts("cats_strings").value_or(std::vector<std::string>())},
      numbers{numbers_of(n.integers("cats_int64s").value_or(Ints())), {}};
  if (n.failed()) return;
  if (n.dtype(x) == DType::string) encode(n, texts, numbers);
  else encode(n, numbers, texts);
}

// The maps of all rows have the same keys, so the scores stay a tensor with a column for each key.
void import_ml_zip_map(NodeImport& n) {
  const Val x = n.in(0);
  std::string keys;
  for (const std::string& text :
       n.texts("classlabels_strings").value_or(std::vector<std::string>()))
    keys += (keys.empty() ? "" : ", ") + text;
  for (const int64_t number : n.integers("classlabels_int64s").value_or(Ints()))
    keys += (keys.empty() ? "" : ", ") + std::to_string(number);
  if (n.failed()) return;
  n.warn("'" + n.node.outputs[0] +
         "' (ZipMap) is the tensor of its scores, not a list of maps; a "
         "column for each of " +
         keys);
  n.set(x);
}

}  // namespace tw::onnx_import
