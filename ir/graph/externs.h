// The functions of the runtime library (runtime/ops) that op::Extern calls: what each one is
// called, takes and gives. A new one: docs/internals/adding-an-op.md.
#pragma once
#include "ir/graph/graph.h"
#include "runtime/ops/ops.h"

namespace tw {

// In the order of their names.
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
  const char* name;  // of the text form; the C function is tw_op_<name>
  int outputs;       // always as many; the last ones may be scratch memory that nobody reads
  bool folds;        // equal inputs give equal outputs
  // The input whose memory the first output, of its type, may take: the function then finds both
  // data equal; -1: none
  int in_place;
  // Checks everything: the inputs (absent ones are null) and the attributes of an untrusted model.
  Expected<std::vector<TensorType>> (*infer)(const op::Extern&,
                                             const std::vector<const TensorType*>& inputs);
  int32_t (*run)(const tw_op_args*);
};
const ExternInfo& extern_info(ExternFunction function);  // externs/table.cpp

}  // namespace tw
