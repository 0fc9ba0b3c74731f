// Importers of Attention and RotaryEmbedding of ai.onnx.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "frontend/onnx/ops/attention/attention_core.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// The position of the first query: behind the past; or such that the last query is the last valid
// key; or 0. `lengths` is i64 [B]. The result is [1] or [B, 1, 1, 1].
Val first_position(NodeImport& n, const Expr& queries, Val past, Val lengths) {
  const auto known = [&](const Expr& e) {
    return n.builder().known({n.simplified(e)}, DType::i64, {1});
  };
  if (past.valid()) return known(n.dim(past, 2));
  if (!lengths.valid()) return known(0);
  return n.reshape(n.sub(lengths, known(queries)), {n.dim(lengths, 0), 1, 1, 1});
}

struct Operands {
  Val q, k, v;        // split into heads
  bool flat = false;  // given as [B, S, heads * D]
};

Operands operands(NodeImport& n) {
  Operands o{n.in(0), n.in(1), n.in(2)};
  if (n.failed()) return o;
  const int64_t rank = n.rank(o.q);
  if ((rank != 3 && rank != 4) || n.rank(o.k) != rank || n.rank(o.v) != rank) {
    n.invalid(llvm::formatv(
                  "queries, keys and values of rank {0}, {1} and {2}; all must be of rank 3 or 4",
                  rank, n.rank(o.k), n.rank(o.v))
                  .str());
    return o;
  }
  o.flat = rank == 3;
  if (!o.flat) return o;
  const int64_t heads = n.integer("q_num_heads", 0), kv_heads = n.integer("kv_num_heads", 0);
  o.q = split_heads(n, o.q, heads);
  o.k = split_heads(n, o.k, kv_heads);
  o.v = split_heads(n, o.v, kv_heads);
  return o;
}

}  // namespace

// Inputs: q, k, v, optional attn_mask, past_key, past_value, nonpad_kv_seqlen. Outputs: y,
// present_key, present_value, qk_matmul_output.
void import_attention(NodeImport& n) {
  const Operands o = operands(n);
  const Val past_key = n.maybe(4), past_value = n.maybe(5);
  Val lengths = n.maybe(6);
  const bool causal = n.integer("is_causal", 0) != 0;
  const int64_t left = n.integer("left_window_size", -1),
                right = n.integer("right_window_size", -1),
                mode = n.integer("qk_matmul_output_mode", 0);
  const int64_t precision = n.integer("softmax_precision", 0);
  if (n.failed()) return;
  if (past_key.valid() != past_value.valid())
    return n.invalid("past_key and past_value go together");
  if (past_key.valid() && lengths.valid())
    return n.invalid("nonpad_kv_seqlen goes without past_key and past_value");
  if (lengths.valid() && n.rank(lengths) != 1)
    return n.invalid("nonpad_kv_seqlen must have one axis");
  if (std::max(std::abs(left), std::abs(right)) > (int64_t{1} << 40))
    return n.invalid("a window of more than 2^40 keys");
  if (mode < 0 || mode > 3)
    return n.invalid(
        llvm::formatv("attribute qk_matmul_output_mode={0}, expected 0 to 3", mode).str());
  AttentionCore core;
  core.q = o.q;
  core.k = with_past(n, past_key, o.k);
  core.v = with_past(n, past_value, o.v);
  core.scale = n.real("scale", 0);
  core.softcap = n.real("softcap", 0);
  core.merged = o.flat;
  if (precision != 0) {
    core.precision = dtype_from_onnx(static_cast<int>(std::clamp<int64_t>(precision, 0, 1000)));
    if (!core.precision || !is_float(*core.precision))
      return n.invalid(
          llvm::formatv("attribute softmax_precision={0} is no float type", precision).str());
  }
  const Expr queries = n.dim(core.q, 2), keys = n.dim(core.k, 2);
  if (lengths.valid()) lengths = n.within(lengths, 0, keys, "length");
  core.allowed = visible_keys(n, queries, keys, first_position(n, queries, past_key, lengths),
                              causal, left, right);
  if (lengths.valid()) {
    const Val each = n.reshape(lengths, {n.dim(lengths, 0), 1, 1, 1});
    core.allowed = both(n, core.allowed, n.less(positions(n, keys, 4, 3), each));
  }
  if (const Val mask = n.maybe(3); mask.valid()) {
    const bool condition = n.dtype(mask) == DType::boolean;
    const Val whole = as_long_as(n, condition ? mask : n.cast(mask, n.dtype(core.q)), keys,
                                 condition ? 0 : kMinusInfinity);
    if (condition) core.allowed = both(n, core.allowed, whole);
    else core.bias = whole;
  }
  core.masked_rows = n.has(3) || lengths.valid() || left >= 0 || right >= 0;
  const AttentionParts parts = attention(n, core);
  n.set(n.cast(parts.y, n.dtype(core.q)));  // the values may have another type
  n.set(1, core.k);
  n.set(2, core.v);
  if (n.wanted(3))
    n.set(3, mode == 0   ? parts.raw
             : mode == 1 ? parts.capped
             : mode == 2 ? parts.biased
                         : parts.weights);
}

// Inputs: x, cos_cache, sin_cache, optional position_ids [B, S].
void import_rotary_embedding(NodeImport& n) {
  const Val x = n.in(0), ids = n.maybe(3);
  Val cos = n.in(1), sin = n.in(2);
  const int64_t turned = n.integer("rotary_embedding_dim", 0), heads = n.integer("num_heads", 0);
  if (n.failed()) return;
  if (n.rank(x) != 3 && n.rank(x) != 4)
    return n.invalid(llvm::formatv("an input of rank {0}, expected 3 or 4", n.rank(x)).str());
  if (ids.valid()) {
    if (n.rank(cos) != 2 || n.rank(sin) != 2 || n.rank(ids) != 2)
      return n.invalid("with position_ids, ids and caches have two axes");
    cos = n.emit(op::Gather{0}, {cos, ids});
    sin = n.emit(op::Gather{0}, {sin, ids});
  }
  if (!n.failed() && (n.rank(cos) != 3 || n.rank(sin) != 3))
    return n.invalid("without position_ids the caches have three axes");
  if (const auto half = n.static_dim(cos, 2); half && turned != 0 && *half * 2 != turned)
    return n.invalid(
        llvm::formatv("caches of {0} columns for rotary_embedding_dim={1}", *half, turned).str());
  n.set(rotated(n, x, cos, sin, heads, n.integer("interleaved", 0) != 0));
}

}  // namespace tw::onnx_import
