// What all attention operators are made of: products with the keys, masks, softmax, product with
// the values, in the form that passes/match_attention.h makes one kernel of.
#pragma once
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {

// [B, S, heads * D] to [B, heads, S, D] and back.
Val split_heads(NodeImport& n, Val x, int64_t heads);
Val merge_heads(NodeImport& n, Val x);
// [B, heads of keys, past, D] and the new ones, one behind the other; past may be absent.
Val with_past(NodeImport& n, Val past, Val fresh);
// a and b of two conditions; an absent one is true
Val both(NodeImport& n, Val a, Val b);
Val sum_of(NodeImport& n, Val a, Val b);  // an absent one is 0
// The mask with a last axis of exactly `keys`: where it is not known to be so long, positions
// behind its end are `outside`.
Val as_long_as(NodeImport& n, Val mask, const Expr& keys, double outside);

struct AttentionCore {
  // [B, heads, S, D], [B, heads of keys, T, D], [B, heads of keys, T, Dv]: heads is a multiple of
  // theirs
  Val q, k, v;
  double scale = 0;    // of the products; 0: 1 / sqrt(D)
  double softcap = 0;  // c tanh(x / c); 0: none
  Val allowed;         // bool, absent: all; broadcasts to [B, heads, S, T], like bias
  Val bias;            // added
  Val sink;            // [heads]: a score more in each row, of a key whose value is 0
  // Rows where all is masked are 0 (else NaN, or what the bias leaves)
  bool masked_rows = false;
  std::optional<DType> precision;  // of the softmax
  bool merged = false;             // y as [B, S, heads * Dv]
};
// All of q's type; [B, heads, S, T] but y ([B, heads, S, Dv] or merged). Those that nobody wants
// cost nothing.
struct AttentionParts {
  Val y, raw, capped, biased, weights;
};
AttentionParts attention(NodeImport& n, const AttentionCore& a);

// The keys j of a query at position `first` + i: j <= position (causal), j >= position - left, j <=
// position + right where those are not negative. first: [1] or [B, 1, 1, 1] of i64. Absent: all
// are.
Val visible_keys(NodeImport& n, const Expr& queries, const Expr& keys, Val first, bool causal,
                 int64_t left, int64_t right);

// x turned by position: [B, heads, S, D], or [B, S, heads * D] with `heads`; cos and sin: [B or 1,
// S, half of the turned columns].
Val rotated(NodeImport& n, Val x, Val cos, Val sin, int64_t heads, bool interleaved);

}  // namespace tw::onnx_import
