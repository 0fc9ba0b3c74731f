// Importer of GroupQueryAttention of com.microsoft. Each sequence of the batch has a past of its
// own length, and its new keys follow right behind it.
#include "frontend/onnx/ops/attention/attention_core.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

// The queries, keys and values, split into heads.
struct GroupQueryOperands {
  Val q, k, v;
  int64_t heads = 0, kv_heads = 0;
};

// They are separate, or packed as [B, S, (heads + 2 heads of keys) * D] in the query.
GroupQueryOperands group_query_operands(NodeImport& n) {
  GroupQueryOperands o;
  o.heads = n.integer("num_heads", 0), o.kv_heads = n.integer("kv_num_heads", 0);
  Val q = n.in(0), k = n.maybe(1), v = n.maybe(2);
  if (n.failed()) return o;
  if (o.heads < 1 || o.kv_heads < 1 || o.heads % o.kv_heads != 0 || n.rank(q) != 3) {
    n.invalid(llvm::formatv("{0} heads of queries for {1} of keys, and queries of shape {2}",
                            o.heads, o.kv_heads, to_string(n.shape(q)))
                  .str());
    return o;
  }
  if (!k.valid()) {
    const int64_t width = n.need_static_dim(q, 2, "GroupQueryAttention"),
                  all = o.heads + 2 * o.kv_heads;
    if (width % all != 0) n.invalid(llvm::formatv("{0} columns for {1} heads", width, all).str());
    const int64_t size = width / all;
    v = n.slice(q, 2, (o.heads + o.kv_heads) * size, o.kv_heads * size);
    k = n.slice(q, 2, o.heads * size, o.kv_heads * size);
    q = n.slice(q, 2, 0, o.heads * size);
  }
  o.q = split_heads(n, q, o.heads);
  o.k = split_heads(n, k, o.kv_heads);
  o.v = split_heads(n, v, o.kv_heads);
  return o;
}

// Rows [0, length) of the past, then the new rows, then zeros: [B, heads, total, D]. `before` is
// i64 [B, 1], the length of each past.
Val present(NodeImport& n, Val past, Val fresh, Val before, const Expr& total) {
  const Expr batch = n.dim(fresh, 0), heads = n.dim(fresh, 1), rows = n.dim(fresh, 2),
             size = n.dim(fresh, 3);
  const Val at = positions(n, total, 2, 1), zero = n.scalar(0, DType::i64);
  const auto known = [&](const Expr& e) {
    return n.builder().known({n.simplified(e)}, DType::i64, {});
  };
  const Val behind = n.sub(at, before);  // [B, total]: index of the new row
  const Val inside = n.min(n.max(behind, zero), known(rows - Expr(1)));
  const Val row = n.add(inside, n.mul(positions(n, batch, 2, 0), known(rows)));
  const Val flat = n.reshape(n.transpose(fresh, {0, 2, 1, 3}), {batch * rows, heads, size});
  const Val moved = n.transpose(n.emit(op::Gather{0, true}, {flat, row}), {0, 2, 1, 3});
  const auto everywhere = [&](Val condition) {
    return n.reshape(condition, {n.dim(condition, 0), 1, total, 1});
  };
  const Val added = n.select(everywhere(n.less(behind, known(rows))), moved, n.scalar(0, fresh));
  if (!past.valid()) return added;
  Val old = past;
  if (!is_const(n.simplified(n.dim(past, 2) - total), 0)) {
    // An index behind the end reads the last row, so even a past that may be empty needs one
    if (!is_const(n.simplified(lt(Expr(0), n.dim(past, 2))), 1)) {
      const Shape none(4, Expr(0)), one_row = {Expr(0), Expr(0), Expr(1), Expr(0)};
      old = n.emit(op::Pad{PadMode::constant, none, one_row}, {old});
    }
    old = n.emit(op::Gather{2, true}, {old, positions(n, total, 1, 0)});
  }
  return n.select(everywhere(n.less(behind, zero)), old, added);
}

// The scale of a symmetric i8 cache: one for all, or one for each channel of each head. Its shape
// broadcasts over [B, heads, total, D]. Invalid for a cache of floats.
Val cache_scale(NodeImport& n, const char* attribute, size_t input, Val fresh) {
  const std::string kind = n.text(attribute, "NONE");
  if (kind == "NONE") {
    if (n.has(input)) n.invalid(std::string(attribute) + " is NONE, and there is a scale");
    return {};
  }
  if (kind != "PER_TENSOR" && kind != "PER_CHANNEL") {
    n.invalid(std::string("attribute ") + attribute + "=" + kind);
    return {};
  }
  if (n.integer("kv_cache_bit_width", 8) != 8) {
    n.fail("a cache of 4 bits", "export with a cache of 8 bits or of floats");
    return {};
  }
  const Val scale = n.cast(n.in(input), n.dtype(fresh));
  if (n.failed()) return {};
  return kind == "PER_TENSOR" ? n.reshape(scale, {})
                              : n.reshape(scale, {1, n.dim(fresh, 1), 1, n.dim(fresh, 3)});
}

Val to_cache(NodeImport& n, Val x, Val scale) {
  if (!scale.valid() || n.failed()) return x;
  return n.emit(op::Cast{DType::i8, true}, {n.unary(UnaryOp::round, n.div(x, scale))});
}
Val from_cache(NodeImport& n, Val x, Val scale) {
  return scale.valid() && !n.failed() ? n.mul(n.cast(x, n.dtype(scale)), scale) : x;
}

bool refused(NodeImport& n) {
  if (n.integer("sliding_window_cache", 0) != 0)
    n.fail("attribute sliding_window_cache=1", "export with a whole cache");
  if (n.has(14) || n.has(15))
    n.fail("norms of queries and keys", "export them as SimplifiedLayerNormalization");
  return n.failed();
}

}  // namespace

// Inputs: query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache,
// sin_cache, position_ids, attention_bias, head_sink, k_scale, v_scale. Outputs: output,
// present_key, present_value, output_qk
void import_group_query_attention(NodeImport& n) {
  GroupQueryOperands o = group_query_operands(n);
  const Val past_key = n.maybe(3), past_value = n.maybe(4), lengths = n.in(5);
  if (n.failed() || refused(n)) return;
  const Expr batch = n.dim(o.q, 0), rows = n.dim(o.q, 2),
             past = past_key.valid() ? n.dim(past_key, 2) : Expr(0);
  const std::optional<std::vector<Expr>> given = n.known(n.in(6));
  const Expr total = n.simplified(given && given->size() == 1 ? max(past, (*given)[0])
                                                              : past + rows);
  const Val count = n.builder().known({rows}, DType::i64, {}), zero = n.scalar(0, DType::i64);
  const Val last = n.within(lengths, 0, total - Expr(1), "last key");
  const Val ends = n.add(n.reshape(last, {n.dim(lengths, 0), 1}), n.scalar(1, DType::i64));
  // [B, 1]: keys before this block; 0 for a padded prompt
  const Val before = n.max(n.sub(ends, count), zero);
  if (n.integer("do_rotary", 0) != 0) {
    const bool interleaved = n.integer("rotary_interleaved", 0) != 0;
    const Val ids = n.has(9) ? n.cast(n.in(9), DType::i64)
                             : n.add(before, positions(n, rows, 2, 1));
    const Val cos = n.emit(op::Gather{0}, {n.in(7), ids}),
              sin = n.emit(op::Gather{0}, {n.in(8), ids});
    o.q = rotated(n, o.q, cos, sin, o.heads, interleaved);
    o.k = rotated(n, o.k, cos, sin, o.kv_heads, interleaved);
  }
  if (n.failed()) return;
  const Val k_scale = cache_scale(n, "k_quant_type", 12, o.k),
            v_scale = cache_scale(n, "v_quant_type", 13, o.v);
  const Val keys = present(n, past_key, to_cache(n, o.k, k_scale), before, total),
            values = present(n, past_value, to_cache(n, o.v, v_scale), before, total);
  if (n.failed()) return;
  AttentionCore core;
  core.q = o.q;
  core.k = from_cache(n, keys, k_scale);
  core.v = from_cache(n, values, v_scale);
  core.scale = n.real("scale", 0);
  core.softcap = n.real("softcap", 0);
  core.merged = true;
  const bool causal = n.integer("causal", 1) != 0;
  const int64_t window = n.integer("local_window_size", -1);
  if (window > (int64_t{1} << 40)) return n.invalid("a window of more than 2^40 keys");
  const Val first = n.reshape(before, {n.dim(before, 0), 1, 1, 1});
  // The window includes the query's own key
  core.allowed = visible_keys(n, rows, total, first, causal, window > 0 ? window - 1 : -1, -1);
  if (!causal || !is_const(rows, 1))
    core.allowed = both(
        n, core.allowed,
        n.less(positions(n, total, 4, 3), n.reshape(ends, {n.dim(ends, 0), 1, 1, 1})));
  core.masked_rows = true;  // queries behind a padded prompt may see nothing
  if (n.has(10)) core.bias = as_long_as(n, n.in(10), total, 0);
  if (n.has(11)) core.sink = n.in(11);
  else if (n.integer("smooth_softmax", -1) > 0) core.sink = n.expand(n.scalar(0, o.q), {o.heads});
  const AttentionParts parts = attention(n, core);
  n.set(parts.y);
  n.set(1, keys);
  n.set(2, values);
  if (n.wanted(3)) n.set(3, n.integer("qk_output", 0) == 2 ? parts.weights : parts.biased);
}

}  // namespace tw::onnx_import
