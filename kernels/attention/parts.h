// The parts of attention that all its kernels take from the group, and how they read and write
// values.
#pragma once
#include "kernels/attention/causal.h"
#include "kernels/common/group_builder.h"

namespace tw {

struct AttentionParts {
  const Node *softmax = nullptr, *scores = nullptr, *product = nullptr;
  Ints perm;    // permutation of a transpose behind the product; empty: none
  Shape outer;  // batch extents
  Expr rows, keys, depth, columns;
};
AttentionParts attention_parts(const GroupBuilder& b, const Node& product);

// Computes the mask's elements from their places.
void define_by_places(GroupBuilder& b, const CausalMask& mask);

// in_f32 computes an expression, and all that leads to it, in f32; a short float's intermediate
// roundings are dropped. rounded_to rounds the result to the type.
Expr in_f32(const Expr& e);
Expr rounded_to(DType dtype, const Expr& e);
// exp(difference) for f32
Expr exponential(const Expr& difference);
// The inverse of a row's sum of exponentials. A masked softmax gives 0 for a row without any key.
Expr inverse_of_sum(const AttentionParts& parts, const Expr& sum);
Index joined(Index index, const Index& more);
// The batch part of an operand's index; broadcast axes read 0. row: batch indices, then the row.
Index batch_index(const Shape& shape, const Index& row);

// The group's output buffer, and the index in it of [batch.., row, column]
struct AttentionOutput {
  BufferId buffer;
  Index at;
};
AttentionOutput attention_output(GroupBuilder& b, const AttentionParts& parts,
                                 const Index& logical);

}  // namespace tw
