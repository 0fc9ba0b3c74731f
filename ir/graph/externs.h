// The runtime library functions (runtime/ops) that op::Extern calls: name, inputs and outputs of
// each. To add one, see docs/internals/adding-an-op.md.
#pragma once
#include "ir/graph/graph.h"
#include "runtime/ops/ops.h"

namespace tw {

// In alphabetical order
enum class ExternFunction : uint8_t {
  bit_cast,
  class_probabilities,
  compress,
  det,
  non_max_suppression,
  nonzero,
  random_bits,
  refuse,
  scatter_elements,
  scatter_nd,
  string_concat,
  string_const,
  string_equal,
  string_find,
  string_match,
  string_normalize,
  string_parts,
  string_split,
  string_token_count,
  string_tokens,
  tensor_scatter,
  topk,
  tree_ensemble,
  unique
};
inline constexpr size_t kExternCount = 24;

struct ExternInfo {
  ExternFunction function;
  const char* name;  // name in the text form; the C function is tw_op_<name>
  int outputs;       // fixed count; the last ones may be scratch memory that nobody reads
  bool folds;        // true: equal inputs give equal outputs
  // The input whose memory the first output may take, both of one type; -1: none. The function
  // handles the case where both point to the same data.
  int in_place;
  // Checks everything: an untrusted model supplies the inputs and attributes. Absent inputs are
  // null.
  Expected<std::vector<TensorType>> (*infer)(const op::Extern&,
                                             const std::vector<const TensorType*>& inputs);
  int32_t (*run)(const tw_op_args*);
};
const ExternInfo& extern_info(ExternFunction function);  // externs/table.cpp

}  // namespace tw
