// Importers of Attention, MultiHeadAttention, QAttention and RotaryEmbedding of com.microsoft.
// Their masks add a large negative number, so a query whose keys are all masked is still a mean of
// values.
#include <algorithm>
#include <limits>

#include "frontend/onnx/ops/attention/attention_core.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

constexpr float kMasked = -10000.0f;

Val zero_or(NodeImport& n, Val allowed, double filter, Val like) {
  return n.select(allowed, n.scalar(0, like), n.scalar(filter, like));
}

// The condition that a key counts, which broadcasts to [B, heads, S, T]. mask is [B] (lengths), [2
// B] (ends, then starts), [3 B + 2] (lengths first), or it has 0 for masked keys: [B, T], [B, S, T]
// or [B, 1, M, M].
Val counted_keys(NodeImport& n, Val mask, const Expr& batch, const Expr& queries,
                 const Expr& keys) {
  if (!mask.valid() || n.failed()) return {};
  const auto holds = [&](Val m) { return n.binary(BinaryOp::ne, m, n.scalar(0, m)); };
  const Expr first = n.dim(mask, 0);
  const auto is = [&](const Expr& count) { return is_const(n.simplified(first - count), 0); };
  switch (n.rank(mask)) {
    case 1: {
      const Val key = positions(n, keys, 4, 3), wide = n.cast(mask, DType::i64);
      const auto part = [&](const Expr& start) {
        return n.reshape(n.slice(wide, 0, start, batch), {batch, 1, 1, 1});
      };
      const Val before_end = n.less(key, part(0));
      const bool starts = is(batch * Expr(2));
      if (!starts && !is(batch) && !is(batch * Expr(3) + Expr(2))) break;
      return starts ? both(n, before_end, n.binary(BinaryOp::le, part(batch), key)) : before_end;
    }
    case 2: return n.reshape(as_long_as(n, holds(mask), keys, 0), {first, 1, 1, keys});
    case 3: return n.reshape(as_long_as(n, holds(mask), keys, 0), {first, 1, n.dim(mask, 1), keys});
    case 4: {
      const Val rows = n.slice(mask, 2, n.simplified(keys - queries), queries);
      return holds(n.slice(rows, 3, 0, keys));
    }
  }
  n.invalid(llvm::formatv("a mask of shape {0} for {1} sequences", to_string(n.shape(mask)),
                          to_string(batch))
                .str());
  return {};
}

Val row(NodeImport& n, Val bias, int64_t start, int64_t count) {
  return n.slice(bias, 0, start, count);
}

// Sets the bias and the condition of the scores, from a padding mask, an additive bias, and
// causality behind the past.
void add_masks(NodeImport& n, AttentionCore& core, Val mask, Val bias, const Expr& past,
               bool causal) {
  const Expr batch = n.dim(core.q, 0), queries = n.dim(core.q, 2), keys = n.dim(core.k, 2);
  const double filter = n.real("mask_filter_value", static_cast<double>(kMasked));
  if (const Val counted = counted_keys(n, mask, batch, queries, keys); counted.valid())
    core.bias = zero_or(n, counted, filter, core.q);
  if (bias.valid()) core.bias = sum_of(n, core.bias, as_long_as(n, bias, keys, 0));
  const Val first = n.builder().known({n.simplified(past)}, DType::i64, {1});
  core.allowed = visible_keys(n, queries, keys, first, causal, -1, -1);
}

bool shares_buffers(NodeImport& n) {
  if (n.integer("past_present_share_buffer", 0) == 0) return false;
  n.fail("attribute past_present_share_buffer=1", "export with separate past and present tensors");
  return true;
}

// Attention behind the joint projection x: [B, S, hidden of q, k and v].
void attend(NodeImport& n, Val x, const Ints& hidden, Val mask, Val past, Val bias) {
  const int64_t heads = n.integer("num_heads", 0);
  if (n.failed()) return;
  AttentionCore core;
  core.q = split_heads(n, n.slice(x, 2, 0, hidden[0]), heads);
  Val k = split_heads(n, n.slice(x, 2, hidden[0], hidden[1]), heads),
      v = split_heads(n, n.slice(x, 2, hidden[0] + hidden[1], hidden[2]), heads);
  Expr before = 0;
  if (past.valid() && !n.failed()) {
    if (n.rank(past) != 5)
      return n.invalid(llvm::formatv("a past of shape {0}", to_string(n.shape(past))).str());
    before = n.dim(past, 3);
    const auto part = [&](int64_t i) {
      return n.reshape(n.slice(past, 0, i, 1),
                       {n.dim(past, 1), n.dim(past, 2), before, n.dim(past, 4)});
    };
    k = with_past(n, part(0), k);
    v = with_past(n, part(1), v);
  }
  core.k = k;
  core.v = v;
  core.scale = n.real("scale", 0);
  core.merged = true;
  add_masks(n, core, mask, bias, before, n.integer("unidirectional", 0) != 0);
  n.set(attention(n, core).y);
  if (!n.wanted(1)) return;
  const auto stacked = [&](Val part) {
    return n.reshape(part, {1, n.dim(part, 0), n.dim(part, 1), n.dim(part, 2), n.dim(part, 3)});
  };
  n.set(1, n.emit(op::Concat{0}, {stacked(k), stacked(v)}));
}

// The numbers of the projection's columns that are queries, keys and values.
std::optional<Ints> hidden_sizes(NodeImport& n, Val weights) {
  const int64_t columns = n.need_static_dim(weights, 1, "attention");
  const Ints hidden =
      n.integers("qkv_hidden_sizes").value_or(Ints{columns / 3, columns / 3, columns / 3});
  if (n.failed()) return std::nullopt;
  const bool fits = hidden.size() == 3 && std::all_of(hidden.begin(), hidden.end(), [&](int64_t h) {
                      return h > 0 && h <= columns;
                    });
  if (fits && hidden[0] == hidden[1] && hidden[0] + hidden[1] + hidden[2] == columns) return hidden;
  n.invalid(
      llvm::formatv("weights of {0} columns, and qkv_hidden_sizes do not add up to that", columns)
          .str());
  return std::nullopt;
}

}  // namespace

// Inputs: input, weights, bias, mask_index, past, attention_bias, past_sequence_length. Outputs:
// output, present
void import_ms_attention(NodeImport& n) {
  const Val x = n.in(0), weights = n.in(1);
  if (n.failed() || shares_buffers(n)) return;
  if (n.integer("do_rotary", 0) != 0)
    return n.fail("attribute do_rotary=1", "export with RotaryEmbedding");
  if (n.rank(x) != 3 || n.rank(weights) != 2)
    return n.invalid("an input of three axes and weights of two are needed");
  const auto hidden = hidden_sizes(n, weights);
  if (!hidden) return;
  Val projected = n.emit(op::MatMul{}, {x, weights});
  if (n.has(2)) projected = n.add(projected, n.in(2));
  attend(n, projected, *hidden, n.maybe(3), n.maybe(4), n.maybe(5));
}

// Inputs: input, weight, bias, input_scale, weight_scale, mask_index, input_zero_point,
// weight_zero_point, past. Outputs: output, present
void import_qattention(NodeImport& n) {
  const Val x = n.in(0), weights = n.in(1), bias = n.in(2);
  if (n.failed() || shares_buffers(n)) return;
  if (n.integer("do_rotary", 0) != 0)
    return n.fail("attribute do_rotary=1", "export with RotaryEmbedding");
  if (n.rank(x) != 3 || n.rank(weights) != 2)
    return n.invalid("an input of three axes and weights of two are needed");
  const auto dequantized = [&](Val v, Val scale, Val zero, int64_t axis) {
    const auto flat = [&](Val p) {
      return p.valid() && is_const(element_count(n.shape(p)), 1) ? n.reshape(p, {}) : p;
    };
    std::vector<Val> inputs = {v, flat(scale)};
    if (zero.valid()) inputs.push_back(flat(zero));
    if (inputs.size() == 3 && n.rank(inputs[1]) > n.rank(inputs[2]))
      inputs[2] = n.expand(inputs[2], n.shape(inputs[1]));
    if (inputs.size() == 3 && n.rank(inputs[2]) > n.rank(inputs[1]))
      inputs[1] = n.expand(inputs[1], n.shape(inputs[2]));
    return n.emit(op::Dequantize{axis}, inputs);
  };
  const auto hidden = hidden_sizes(n, weights);
  if (!hidden) return;
  const Val left = dequantized(x, n.in(3), n.maybe(6), 0),
            right = dequantized(weights, n.in(4), n.maybe(7), 1);
  attend(n, n.add(n.emit(op::MatMul{}, {left, right}), bias), *hidden, n.maybe(5), n.maybe(8), {});
}

// Inputs: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value,
// past_sequence_length, cache_indirection. Outputs: output, present_key, present_value, qk
void import_multi_head_attention(NodeImport& n) {
  Val q = n.in(0), k = n.maybe(1), v = n.maybe(2);
  const int64_t heads = n.integer("num_heads", 0);
  if (n.has(8) || n.has(9))
    return n.fail("a cache that past and present share",
                  "export with separate past and present tensors");
  if (n.failed()) return;
  if (heads < 1) return n.invalid("attribute num_heads is missing");
  const auto packed = [&](Val x, int64_t which) {  // [B, S, heads, parts, D] to [B, S, heads * D]
    const Expr width = n.dim(x, 2) * n.dim(x, 4);
    return n.reshape(n.slice(x, 3, which, 1), {n.dim(x, 0), n.dim(x, 1), width});
  };
  if (n.rank(q) == 5) {
    v = packed(q, 2), k = packed(q, 1), q = packed(q, 0);
  } else if (k.valid() && n.rank(k) == 5) {
    v = packed(k, 1), k = packed(k, 0);
  }
  if (!k.valid() || !v.valid())
    return n.fail("queries without keys and values",
                  "give keys and values, or all packed in one tensor");
  const Val bias = n.maybe(3);
  int64_t start = 0;
  const auto by_heads = [&](Val x) {
    // Keys and values of an encoder are split into heads already
    if (n.failed() || n.rank(x) == 4) return x;
    const int64_t width = n.need_static_dim(x, 2, "attention");
    if (bias.valid()) x = n.add(x, row(n, bias, start, width));
    start += width;
    return split_heads(n, x, heads);
  };
  AttentionCore core;
  core.q = by_heads(q);
  core.k = with_past(n, n.maybe(6), by_heads(k));
  core.v = with_past(n, n.maybe(7), by_heads(v));
  core.scale = n.real("scale", 0);
  core.merged = true;
  if (n.failed()) return;
  add_masks(n, core, n.maybe(4), n.maybe(5), n.has(6) ? n.dim(n.in(6), 2) : Expr(0),
            n.integer("unidirectional", 0) != 0);
  const AttentionParts parts = attention(n, core);
  n.set(parts.y);
  n.set(1, core.k);
  n.set(2, core.v);
  if (n.wanted(3)) n.set(3, parts.biased);
}

// Inputs: input, position_ids [1] or [B, S], cos_cache, sin_cache
void import_ms_rotary_embedding(NodeImport& n) {
  const Val x = n.in(0), cos = n.in(2), sin = n.in(3);
  Val ids = n.in(1);
  if (n.failed()) return;
  if (n.integer("is_packed_batching", 0) != 0)
    return n.fail("attribute is_packed_batching=1", "export without packed batches");
  const int64_t rank = n.rank(x);
  if ((rank != 3 && rank != 4) || n.rank(cos) != 2 || n.rank(sin) != 2)
    return n.invalid("an input of three or four axes and caches of two are needed");
  int64_t heads = n.integer("num_heads", 0);
  const int64_t half = n.need_static_dim(cos, 1, "RotaryEmbedding");
  if (rank == 3 && heads == 0)
    heads = n.need_static_dim(x, 2, "RotaryEmbedding") / std::max<int64_t>(1, 2 * half);
  if (n.failed()) return;
  ids = n.cast(ids, DType::i64);
  if (n.rank(ids) < 2) ids = n.add(n.reshape(ids, {1, 1}), positions(n, n.dim(x, rank - 2), 2, 1));
  n.set(rotated(n, x, n.emit(op::Gather{0}, {cos, ids}), n.emit(op::Gather{0}, {sin, ids}), heads,
                n.integer("interleaved", 0) != 0));
}

}  // namespace tw::onnx_import
