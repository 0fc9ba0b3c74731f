// What all kernels of attention take from its group, and how they read and write values.
#pragma once
#include "kernels/attention/causal.h"
#include "kernels/common/group_builder.h"

namespace tw {

struct AttentionParts {
  const Node *softmax = nullptr, *scores = nullptr, *product = nullptr;
  Ints perm;    // of a transpose behind the product; empty: none
  Shape outer;  // batches
  Expr rows, keys, depth, columns;
};
AttentionParts attention_parts(const GroupBuilder& b, const Node& product);

// The mask's elements are made of their places.
void define_by_places(GroupBuilder& b, const CausalMask& mask);

// In f32, what leads to it too: one rounding to a short float less a step.
Expr in_f32(const Expr& e);
Expr rounded_to(DType dtype, const Expr& e);
Index joined(Index index, const Index& more);
// The batch part of an operand's index: broadcast axes read 0. row: batches, and the row.
Index batch_index(const Shape& shape, const Index& row);

// The group's output and the place of [batch.., row, column] in it.
struct AttentionOutput {
  BufferId buffer;
  Index at;
};
AttentionOutput attention_output(GroupBuilder& b, const AttentionParts& parts,
                                 const Index& logical);

}  // namespace tw
