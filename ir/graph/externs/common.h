// Declares the infer functions of the runtime library's functions, one file for each family. The
// checks shared with operators are in ops/common.h.
#pragma once
#include "ir/graph/externs.h"
#include "ir/graph/ops/common.h"

namespace tw {

using ExternInfer = Expected<std::vector<TensorType>>(const op::Extern&, const Types&);
ExternInfer infer_topk, infer_scatter_elements, infer_scatter_nd, infer_tensor_scatter;
ExternInfer infer_compress, infer_nonzero, infer_non_max_suppression, infer_tree_ensemble,
    infer_unique, infer_random_bits, infer_det;
ExternInfer infer_bit_cast, infer_class_probabilities, infer_refuse;
ExternInfer infer_string_concat, infer_string_const, infer_string_equal, infer_string_find,
    infer_string_match, infer_string_normalize, infer_string_parts, infer_string_split,
    infer_string_token_count, infer_string_tokens;

// Requires at most `most` inputs, with the first `required` ones present.
Error check_inputs(const Types& inputs, size_t required, size_t most);
// Requires exactly these counts of entries.
Error check_counts(const op::Extern& attrs, size_t ints, size_t reals, size_t dims);
// axis_entry returns the entry of `ints` as an axis of a tensor of that rank, non-negative.
// check_choice requires an entry in 0 .. count - 1.
Expected<size_t> axis_entry(const op::Extern& attrs, size_t index, size_t rank);
Error check_choice(const op::Extern& attrs, size_t index, int64_t count, const char* what);
TensorType scratch(const Expr& words);  // i64[words]

}  // namespace tw
