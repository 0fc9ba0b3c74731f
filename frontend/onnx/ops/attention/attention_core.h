// The core of all attention operators: product with the keys, masks, softmax, product with the
// values. It has the form from which passes/match_attention.h makes one kernel.
#pragma once
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {

// [B, S, heads * D] to [B, heads, S, D], and back.
Val split_heads(NodeImport& n, Val x, int64_t heads);
Val merge_heads(NodeImport& n, Val x);
// The past [B, heads of keys, past, D] followed by the new entries; the past may be absent.
Val with_past(NodeImport& n, Val past, Val fresh);
// a and b; an absent condition is true
Val both(NodeImport& n, Val a, Val b);
Val sum_of(NodeImport& n, Val a, Val b);  // a + b; an absent one is 0
// The mask with a last axis of exactly `keys`. If it may be shorter, positions behind its end are
// `outside`.
Val as_long_as(NodeImport& n, Val mask, const Expr& keys, double outside);

struct AttentionCore {
  // [B, heads, S, D], [B, heads of keys, T, D], [B, heads of keys, T, Dv]; `heads` is a multiple of
  // the heads of keys
  Val q, k, v;
  double scale = 0;    // factor of the products; 0: 1 / sqrt(D)
  double softcap = 0;  // scores become c tanh(x / c); 0: they stay
  Val allowed;         // bool; absent: all; broadcasts to [B, heads, S, T], like bias
  Val bias;            // added to the scores
  Val sink;            // [heads]: an extra score in each row, for a key whose value is 0
  // Rows without an allowed key are 0; otherwise NaN, or the result of the bias
  bool masked_rows = false;
  std::optional<DType> precision;  // type of the softmax
  bool merged = false;             // y is [B, S, heads * Dv]
};
// All parts have q's type. They are [B, heads, S, T], but y is [B, heads, S, Dv] or merged. Unused
// ones cost nothing.
struct AttentionParts {
  Val y, raw, capped, biased, weights;
};
AttentionParts attention(NodeImport& n, const AttentionCore& a);

// The keys j that a query at position `first` + i sees: j <= position if `causal`; j >= position -
// left and j <= position + right unless these are negative. `first` is i64 [1] or [B, 1, 1, 1].
// Absent if all keys are visible.
Val visible_keys(NodeImport& n, const Expr& queries, const Expr& keys, Val first, bool causal,
                 int64_t left, int64_t right);

// x turned by position: [B, heads, S, D], or [B, S, heads * D] with `heads`. cos and sin are [B or
// 1, S, half of the turned columns].
Val rotated(NodeImport& n, Val x, Val cos, Val sin, int64_t heads, bool interleaved);

}  // namespace tw::onnx_import
