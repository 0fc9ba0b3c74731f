// Code that the op families share: declarations of infer and evaluate functions, argument checks,
// strided walks, element conversion.
#pragma once
#include <array>
#include <span>
#include <type_traits>

#include "ir/graph/graph.h"
#include "ir/graph/unequal_dims.h"

namespace tw {

using Types = std::vector<const TensorType*>;
using Tensors = std::vector<const Tensor*>;
using InferFn = Expected<TensorType>(const OpAttrs&, const Types&);
using EvaluateFn = Expected<Tensor>(const OpAttrs&, const TensorType& out, const Tensors&);
using InferAllFn = Expected<std::vector<TensorType>>(const OpAttrs&, const Types&);
using EvaluateAllFn = Expected<std::vector<Tensor>>(const OpAttrs&,
                                                    const std::vector<TensorType>& outs,
                                                    const Tensors&);

InferFn infer_unary, infer_binary, infer_select, infer_cast, infer_quantize, infer_dequantize,
    infer_lookup;
InferFn infer_conv, infer_conv_transpose, infer_matmul, infer_matmul_nbits, infer_pool,
    infer_reduce, infer_arg_reduce;
InferFn infer_softmax, infer_layer_norm, infer_batch_norm;
InferFn infer_transpose, infer_reshape, infer_expand, infer_concat, infer_slice, infer_gather,
    infer_pad, infer_resize;
InferFn infer_take, infer_within, infer_iota, infer_cumulate;
InferFn infer_recurrent, infer_shape_of, infer_dim_vector, infer_layout_cast;
InferAllFn infer_extern, infer_if, infer_loop;
EvaluateAllFn evaluate_extern, evaluate_if, evaluate_loop;
EvaluateFn evaluate_unary, evaluate_binary, evaluate_select, evaluate_cast, evaluate_quantize,
    evaluate_dequantize, evaluate_lookup;
EvaluateFn evaluate_conv, evaluate_conv_transpose, evaluate_matmul, evaluate_matmul_nbits,
    evaluate_pool, evaluate_reduce, evaluate_arg_reduce;
EvaluateFn evaluate_softmax, evaluate_layer_norm, evaluate_batch_norm;
EvaluateFn evaluate_transpose, evaluate_reshape, evaluate_expand, evaluate_concat, evaluate_slice,
    evaluate_gather;
EvaluateFn evaluate_take, evaluate_within, evaluate_iota, evaluate_cumulate;
EvaluateFn evaluate_recurrent, evaluate_pad, evaluate_resize, evaluate_shape_of,
    evaluate_dim_vector, evaluate_layout_cast;

// Makes the error "input 1 (weights): <message>".
template <class... Args>
Error input_error(size_t index, const char* role, const char* format, Args&&... args) {
  return make_error(DiagCode::invalid_model, "input {0} ({1}): {2}", index, role,
                    llvm::formatv(format, std::forward<Args>(args)...).str());
}
// Makes the error of input_error for two extents that differ, through unequal_dims.
template <class... Args>
Error unequal_input(size_t index, const char* role, const Expr& dim, const Expr& wanted,
                    const char* format, Args&&... args) {
  return unequal_dims(dim, wanted,
                      llvm::formatv("input {0} ({1}): {2}", index, role,
                                    llvm::formatv(format, std::forward<Args>(args)...).str()));
}
inline bool present(const auto& inputs, size_t index) {
  return index < inputs.size() && inputs[index] != nullptr;
}

Error check_dtype(size_t index, const char* role, const TensorType& t, DType wanted);
Error check_rank(size_t index, const char* role, const TensorType& t, size_t rank);
// Requires the same dim for every value of the symbols. `what` names it: "channels".
Error check_dim(size_t index, const char* role, const char* what, const Expr& dim,
                const Expr& wanted);
Error check_shape(size_t index, const char* role, const TensorType& t, const Shape& wanted);
Error check_broadcast(size_t index, const char* role, const TensorType& t, const Shape& to);
Expected<size_t> checked_axis(int64_t axis, size_t rank);  // a negative axis counts from the end
// Requires `count` entries, each in [low, 2^20]. Extents times them stay far from overflow. `what`
// names the attribute: "strides".
Error check_ints(const char* what, const Ints& list, size_t count, int64_t low);

// The type of sums of products. It is i32 for integers narrower than 32 bits, whose operand types
// may differ. Other products have one type.
DType product_type(DType operand);
Error check_product_types(size_t index, const char* role, const TensorType& t, DType other);
// A zero point must be a value of t, an integer type narrower than 32 bits. 0 is valid for any
// type.
Error check_zero(const char* what, int64_t zero, DType t);
Tensor less_zero(const Tensor& x, int64_t zero);  // x - zero, as i32 unless zero is 0

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);
// For each axis of `out`, the stride in a row-major tensor of `shape`; 0 where it is broadcast
std::vector<int64_t> broadcast_strides(std::span<const int64_t> shape,
                                       std::span<const int64_t> out);
std::vector<int64_t> extents(const Shape& shape);  // the extents of a static shape

// Calls fn(flat, offsets) for every point of `shape` in row-major order. offsets[k] is the sum of
// index * strides[k].
template <size_t N, class Fn>
void walk(std::span<const int64_t> shape, const std::array<std::vector<int64_t>, N>& strides,
          Fn fn) {
  std::array<int64_t, N> offsets{};
  std::vector<int64_t> index(shape.size());
  int64_t count = element_count(shape);
  for (int64_t flat = 0; flat < count; ++flat) {
    fn(flat, offsets);
    for (size_t axis = shape.size(); axis-- > 0;) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][axis];
      if (++index[axis] < shape[axis]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// out[i, j, ...] = x[tables[0][i] + tables[1][j] + ...], counted in elements. A negative entry
// means outside and yields the bytes of `fill`.
using IndexTables = std::vector<std::vector<int64_t>>;
Tensor gather_tables(const Tensor& x, const IndexTables& tables,
                     std::span<const std::byte> fill = {});

// A tensor's numbers as T. They stay in place if the tensor stores T, and are converted otherwise.
// Integers go through int64_t.
template <class T>
struct Values {
  explicit Values(const Tensor& t) {
    constexpr bool direct = std::is_same_v<T, float>;
    if constexpr (direct) {
      span = t.as<float>();
    } else {
      storage.resize(static_cast<size_t>(t.size()));
      for (size_t i = 0; i < storage.size(); ++i) {
        int64_t flat = static_cast<int64_t>(i);
        if constexpr (std::is_same_v<T, double>) storage[i] = t.at(flat);
        else storage[i] = static_cast<T>(t.int_at(flat));
      }
      span = storage;
    }
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  const T& operator[](int64_t i) const { return span[static_cast<size_t>(i)]; }
  const T* data() const { return span.data(); }
  std::vector<T> storage;
  std::span<const T> span;
};
template <class T>
Tensor tensor_of(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  Tensor out = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) out.set(static_cast<int64_t>(i), values[i]);
    else out.set_int(static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
  }
  return out;
}
// Calls fn(element, accumulator) with the types for sums of products. f32 stays in place and sums
// in double. Other floats are double. Integers are uint64_t, whose wrapping agrees with every
// narrower integer.
template <class Fn>
auto with_numbers(DType dtype, Fn fn) {
  if (dtype == DType::f32) return fn(float{}, double{});
  if (is_float(dtype)) return fn(double{}, double{});
  return fn(uint64_t{}, uint64_t{});
}

}  // namespace tw
