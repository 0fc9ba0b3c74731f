// Shared by the graph tests: small tensors, graphs from text, evaluation of one operator.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace tw::test {

inline Tensor tensor(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  REQUIRE(static_cast<size_t>(t.size()) == values.size());
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
  return t;
}
inline Tensor ints(DType dtype, std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  REQUIRE(static_cast<size_t>(t.size()) == values.size());
  for (size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<int64_t>(i), values[i]);
  return t;
}
// Element i is (i * k mod m - m / 2) / 2: halves that look irregular.
inline Tensor ramp(std::vector<int64_t> shape, int64_t k = 7, int64_t m = 11) {
  Tensor t = Tensor::zeros(DType::f32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, static_cast<double>(i * k % m - m / 2) * 0.5);
  return t;
}
inline std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.at(i));
  return out;
}

template <class T>
T must(Expected<T> value) {
  if (!value) FAIL(error_text(value.takeError()));
  return std::move(*value);
}
template <class T>
std::string error_of(Expected<T> value) {
  if (value) return "no error";
  return error_text(value.takeError());
}
inline std::string error_of(Error error) {
  return error ? error_text(std::move(error)) : "no error";
}

inline TensorType type_of(const Tensor& t) {
  return {t.dtype, Shape(t.shape.begin(), t.shape.end()), {}};
}

// Infers and evaluates one operator on tensors; a null pointer stands for an absent input.
inline Expected<Tensor> try_op(const OpAttrs& attrs, const std::vector<const Tensor*>& inputs) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<Tensor> given;
  for (const Tensor* t : inputs) {
    ids.push_back(t ? graph.add_input("x", type_of(*t)) : ValueId{});
    if (t) given.push_back(*t);
  }
  TW_ASSIGN(ValueId out, graph.add(attrs, ids, "y"));
  graph.add_output(out, "y");
  TW_TRY(verify(graph));
  TW_ASSIGN(std::vector<Tensor> results, evaluate(graph, given));
  CHECK(equal(type_of(results[0]),
              TensorType{graph.value(out).type.dtype, graph.value(out).type.shape, {}}));
  return results[0];
}
inline Tensor run_op(const OpAttrs& attrs, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : inputs) pointers.push_back(&t);
  return must(try_op(attrs, pointers));
}
inline std::string infer_text(const OpAttrs& attrs, const std::vector<TensorType>& inputs) {
  std::vector<const TensorType*> pointers;
  for (const TensorType& t : inputs) pointers.push_back(&t);
  Expected<TensorType> out = infer_type(attrs, pointers);
  return out ? to_string(*out) : error_text(out.takeError());
}
inline void check_close(const Tensor& got, const std::vector<int64_t>& shape,
                        const std::vector<double>& expected, double tolerance) {
  CHECK(got.shape == shape);
  REQUIRE(static_cast<size_t>(got.size()) == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    double error = std::fabs(got.at(static_cast<int64_t>(i)) - expected[i]);
    CHECK_MESSAGE(error <= tolerance, "element ", i, ": ", got.at(static_cast<int64_t>(i)),
                  ", expected ", expected[i]);
  }
}

}  // namespace tw::test
