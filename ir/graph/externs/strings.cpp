// Functions on strings. Compiled regular expressions are vectors of i32.
// * string_const: u8[bytes], a zero behind each string -> string[dims].
// * string_equal, string_concat: two tensors of one shape -> bool or string.
// * string_find: x, sorted keys [k] -> the key's place (i64); -1: not found.
// * string_match: x, a compiled expression -> bool.
// * string_normalize: words [n], words to drop [k] -> string[max(n, 1)], the number kept (i64).
//   ints: case, exact.
// * string_parts: x, delimiter [1] -> the number of parts of each string, the most parts (i64).
//   ints: the most cuts.
// * string_split: inputs and ints of string_parts -> string[x..., most]. dims: most.
// * string_token_count: x, compiled expressions -> the most tokens, with marks (i64). ints: mode,
//   characters of the shortest token, marks.
// * string_tokens: inputs and ints of string_token_count, then the padding string [1] ->
//   string[x..., most]. dims: most.
#include "ir/graph/externs/common.h"

namespace tw {
namespace {

Error check_strings(const Types& in, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (in[i]->dtype != DType::string)
      return make_error(DiagCode::invalid_model, "input {0} is {1}, expected string", i,
                        dtype_name(in[i]->dtype));
  return Error::success();
}

Error check_vector(const Types& in, size_t i, DType dtype) {
  if (in[i]->dtype == dtype && in[i]->shape.size() == 1) return Error::success();
  return make_error(DiagCode::invalid_model, "input {0} is {1}, expected a vector of {2}", i,
                    to_string(*in[i]), dtype_name(dtype));
}

Expected<std::vector<TensorType>> infer_pairs(const op::Extern& attrs, const Types& in,
                                              DType dtype) {
  TW_TRY(check_inputs(in, 2, 2));
  TW_TRY(check_counts(attrs, 0, 0, 0));
  TW_TRY(check_strings(in, 2));
  TW_TRY(check_shape(1, "second strings", *in[1], in[0]->shape));
  return std::vector<TensorType>{{dtype, in[0]->shape, {}}};
}

Error check_parting(const op::Extern& attrs, const Types& in, size_t dims) {
  TW_TRY(check_inputs(in, 2, 2));
  TW_TRY(check_counts(attrs, 1, 0, dims));
  TW_TRY(check_strings(in, 2));
  if (equal(in[1]->shape, Shape{Expr(1)})) return Error::success();
  return make_error(DiagCode::invalid_model, "the delimiter has shape {0}, expected [1]",
                    to_string(in[1]->shape));
}

Error check_tokens(const op::Extern& attrs, const Types& in, size_t inputs, size_t dims) {
  TW_TRY(check_inputs(in, inputs, inputs));
  TW_TRY(check_counts(attrs, 3, 0, dims));
  TW_TRY(check_strings(in, 1));
  TW_TRY(check_vector(in, 1, DType::i32));
  TW_TRY(check_choice(attrs, 0, 3, "the mode"));
  return check_choice(attrs, 2, 2, "marks");
}

}  // namespace

Expected<std::vector<TensorType>> infer_string_const(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 1, 1));
  TW_TRY(check_counts(attrs, 0, 0, attrs.dims.size()));
  TW_TRY(check_vector(in, 0, DType::u8));
  return std::vector<TensorType>{{DType::string, attrs.dims, {}}};
}

Expected<std::vector<TensorType>> infer_string_equal(const op::Extern& attrs, const Types& in) {
  return infer_pairs(attrs, in, DType::boolean);
}

Expected<std::vector<TensorType>> infer_string_concat(const op::Extern& attrs, const Types& in) {
  return infer_pairs(attrs, in, DType::string);
}

Expected<std::vector<TensorType>> infer_string_find(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 2, 2));
  TW_TRY(check_counts(attrs, 0, 0, 0));
  TW_TRY(check_strings(in, 1));
  TW_TRY(check_vector(in, 1, DType::string));
  return std::vector<TensorType>{{DType::i64, in[0]->shape, {}}};
}

Expected<std::vector<TensorType>> infer_string_match(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 2, 2));
  TW_TRY(check_counts(attrs, 0, 0, 0));
  TW_TRY(check_strings(in, 1));
  TW_TRY(check_vector(in, 1, DType::i32));
  return std::vector<TensorType>{{DType::boolean, in[0]->shape, {}}};
}

Expected<std::vector<TensorType>> infer_string_normalize(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 2, 2));
  TW_TRY(check_counts(attrs, 2, 0, 0));
  TW_TRY(check_choice(attrs, 0, 3, "the case"));
  TW_TRY(check_choice(attrs, 1, 2, "exact"));
  for (size_t i : {0, 1}) TW_TRY(check_vector(in, i, DType::string));
  const Expr most = simplify_dim(max(in[0]->shape[0], Expr(1)));
  return std::vector<TensorType>{{DType::string, {most}, {}}, {DType::i64, {}, {}}};
}

Expected<std::vector<TensorType>> infer_string_parts(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_parting(attrs, in, 0));
  return std::vector<TensorType>{{DType::i64, in[0]->shape, {}}, {DType::i64, {}, {}}};
}

Expected<std::vector<TensorType>> infer_string_split(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_parting(attrs, in, 1));
  TensorType parts = *in[0];
  parts.shape.push_back(attrs.dims[0]);
  return std::vector<TensorType>{std::move(parts)};
}

Expected<std::vector<TensorType>> infer_string_token_count(const op::Extern& attrs,
                                                           const Types& in) {
  TW_TRY(check_tokens(attrs, in, 2, 0));
  return std::vector<TensorType>{{DType::i64, {}, {}}};
}

Expected<std::vector<TensorType>> infer_string_tokens(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_tokens(attrs, in, 3, 1));
  TW_TRY(check_vector(in, 2, DType::string));
  TensorType tokens = *in[0];
  tokens.shape.push_back(attrs.dims[0]);
  return std::vector<TensorType>{std::move(tokens)};
}

}  // namespace tw
