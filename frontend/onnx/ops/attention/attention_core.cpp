#include "frontend/onnx/ops/attention/attention_core.h"

#include <cmath>
#include <limits>

namespace tw::onnx_import {
namespace {

bool same(NodeImport& n, const Expr& a, const Expr& b) { return is_const(n.simplified(a - b), 0); }

// The heads of a group that shares keys. They are an axis of their own, or the rows if there is one
// query.
struct Groups {
  NodeImport& n;
  int64_t kv_heads = 1, group = 1;
  bool as_rows = false;

  bool plain() const { return group == 1; }
  Val queries(Val q) const {
    if (plain()) return q;
    const Expr batch = n.dim(q, 0), rows = n.dim(q, 2), depth = n.dim(q, 3);
    return n.reshape(q, as_rows ? Shape{batch, kv_heads, group, depth}
                                : Shape{batch, kv_heads, group, rows, depth});
  }
  Val keys(Val k) const {
    if (plain() || as_rows) return k;
    return n.reshape(k, {n.dim(k, 0), kv_heads, 1, n.dim(k, 2), n.dim(k, 3)});
  }
  // Regroups a mask that broadcasts to [B, heads, S, T].
  Val mask(Val m) const {
    if (plain() || !m.valid()) return m;
    Shape s = n.shape(m);
    while (s.size() < 4) s.insert(s.begin(), Expr(1));
    const bool one = is_const(s[1], 1);
    const Expr outer = one ? Expr(1) : Expr(kv_heads), inner = one ? Expr(1) : Expr(group);
    return n.reshape(
        m, as_rows ? Shape{s[0], outer, inner, s[3]} : Shape{s[0], outer, inner, s[2], s[3]});
  }
  // Back to [B, heads, S, last].
  Val back(Val x, const Expr& batch, const Expr& rows) const {
    if (plain()) return x;
    return n.reshape(x, {batch, kv_heads * group, rows, n.dim(x, n.rank(x) - 1)});
  }
  Val merged(Val y, const Expr& batch, const Expr& rows, const Expr& columns) const {
    if (plain()) y = n.transpose(y, {0, 2, 1, 3});
    else if (!as_rows) y = n.transpose(y, {0, 3, 1, 2, 4});
    return n.reshape(y, {batch, rows, Expr(kv_heads * group) * columns});
  }
};

// Appends a column behind the keys; softmax sees it, the product with the values does not.
Val softmax_with_sink(NodeImport& n, Val scores, Val sink, bool masked) {
  Shape one = n.shape(scores);
  one.back() = 1;
  const Expr keys = n.dim(scores, n.rank(scores) - 1);
  const Val all = n.emit(op::Concat{n.rank(scores) - 1},
                         {scores, n.expand(n.cast(sink, n.dtype(scores)), one)});
  const Val weights = n.emit(op::Softmax{n.rank(scores) - 1, false, masked}, {all});
  return n.slice(weights, n.rank(scores) - 1, 0, keys);
}

}  // namespace

Val split_heads(NodeImport& n, Val x, int64_t heads) {
  if (n.failed()) return {};
  const std::optional<int64_t> hidden = n.static_dim(x, 2);
  if (n.rank(x) != 3 || heads < 1 || !hidden || *hidden % heads != 0) {
    n.invalid(
        llvm::formatv("{0} cannot be split into {1} heads", to_string(n.shape(x)), heads).str());
    return {};
  }
  return n.transpose(n.reshape(x, {n.dim(x, 0), n.dim(x, 1), heads, *hidden / heads}),
                     {0, 2, 1, 3});
}

Val merge_heads(NodeImport& n, Val x) {
  return n.reshape(n.transpose(x, {0, 2, 1, 3}),
                   {n.dim(x, 0), n.dim(x, 2), n.dim(x, 1) * n.dim(x, 3)});
}

Val with_past(NodeImport& n, Val past, Val fresh) {
  if (!past.valid() || n.failed()) return fresh;
  if (n.rank(past) != 4 || n.rank(fresh) != 4) {
    n.invalid(llvm::formatv("a past of shape {0} for {1}", to_string(n.shape(past)),
                            to_string(n.shape(fresh)))
                  .str());
    return {};
  }
  return n.emit(op::Concat{2}, {past, fresh});
}

Val both(NodeImport& n, Val a, Val b) {
  return !a.valid() ? b : !b.valid() ? a : n.binary(BinaryOp::logical_and, a, b);
}
Val sum_of(NodeImport& n, Val a, Val b) { return !a.valid() ? b : !b.valid() ? a : n.add(a, b); }

Val as_long_as(NodeImport& n, Val mask, const Expr& keys, double outside) {
  if (n.failed() || !mask.valid()) return mask;
  const int64_t rank = n.rank(mask);
  if (rank == 0) {
    n.invalid("a mask without axes");
    return {};
  }
  const Expr own = n.dim(mask, rank - 1);
  if (same(n, own, keys)) return mask;
  const Val at = positions(n, keys, 1, 0),
            inside = n.less(at, n.builder().known({own}, DType::i64, {}));
  // An index behind the end reads the last element
  const Val longer = n.emit(op::Gather{rank - 1, true}, {mask, at});
  return n.select(inside, longer, n.scalar(outside, mask));
}

AttentionParts attention(NodeImport& n, const AttentionCore& a) {
  if (n.failed()) return {};
  const Expr batch = n.dim(a.q, 0), rows = n.dim(a.q, 2), columns = n.dim(a.v, 3);
  const int64_t heads = n.need_static_dim(a.q, 1, "attention"),
                kv_heads = n.need_static_dim(a.k, 1, "attention");
  const int64_t depth = n.need_static_dim(a.q, 3, "attention");
  if (n.failed()) return {};
  if (kv_heads < 1 || heads % kv_heads != 0) {
    n.invalid(llvm::formatv("{0} heads of queries share {1} heads of keys", heads, kv_heads).str());
    return {};
  }
  const Groups groups{n, kv_heads, heads / kv_heads, is_const(rows, 1)};
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(depth));
  AttentionParts parts;
  Val scores = n.emit(op::MatMul{false, true}, {groups.queries(a.q), groups.keys(a.k)});
  scores = n.mul(scores, n.scalar(scale, scores));
  parts.raw = groups.back(scores, batch, rows);
  if (a.softcap != 0)
    scores = n.mul(n.unary(UnaryOp::tanh, n.div(scores, n.scalar(a.softcap, scores))),
                   n.scalar(a.softcap, scores));
  parts.capped = a.softcap != 0 ? groups.back(scores, batch, rows) : parts.raw;
  if (a.bias.valid()) scores = n.add(scores, groups.mask(n.cast(a.bias, n.dtype(scores))));
  if (a.allowed.valid())
    scores = n.select(groups.mask(a.allowed), scores,
                      n.scalar(-std::numeric_limits<double>::infinity(), scores));
  parts.biased = groups.back(scores, batch, rows);
  const Val in = n.cast(scores, a.precision.value_or(n.dtype(scores)));
  Val weights;
  if (a.sink.valid()) {
    const Val sink = groups.mask(n.reshape(a.sink, {1, heads, 1, 1}));
    weights = softmax_with_sink(n, in, sink, a.masked_rows);
  } else {
    weights = n.emit(op::Softmax{n.rank(in) - 1, false, a.masked_rows}, {in});
  }
  weights = n.cast(weights, n.dtype(a.v));
  parts.weights = n.cast(groups.back(weights, batch, rows), n.dtype(a.q));
  const Val y = n.emit(op::MatMul{}, {weights, groups.keys(a.v)});
  parts.y = a.merged ? groups.merged(y, batch, rows, columns) : groups.back(y, batch, rows);
  return parts;
}

Val visible_keys(NodeImport& n, const Expr& queries, const Expr& keys, Val first, bool causal,
                 int64_t left, int64_t right) {
  if (!causal && left < 0 && right < 0) return {};
  const int64_t rank = std::max<int64_t>(2, n.rank(first));
  const Val key = positions(n, keys, rank, rank - 1);
  const Val query = n.add(positions(n, queries, rank, rank - 2), first);
  Val allowed;
  if (causal) allowed = n.binary(BinaryOp::le, key, query);
  if (left >= 0)
    allowed = both(
        n, allowed,
        n.binary(BinaryOp::le, n.sub(query, n.scalar(static_cast<double>(left), DType::i64)), key));
  if (right >= 0 && !causal)
    allowed = both(n, allowed,
                   n.binary(BinaryOp::le, key,
                            n.add(query, n.scalar(static_cast<double>(right), DType::i64))));
  return allowed;
}

Val rotated(NodeImport& n, Val x, Val cos, Val sin, int64_t heads, bool interleaved) {
  if (n.failed()) return {};
  const bool flat = n.rank(x) == 3;
  const Shape shape = n.shape(x);
  if (flat) {
    const int64_t hidden = n.need_static_dim(x, 2, "rotary embedding");
    if (n.failed()) return {};
    if (heads < 1 || hidden % heads != 0) {
      n.invalid(llvm::formatv("{0} cannot be split into {1} heads", to_string(shape), heads).str());
      return {};
    }
    x = n.reshape(x, {shape[0], shape[1], heads, hidden / heads});
  }
  const int64_t size = n.need_static_dim(x, 3, "rotary embedding"),
                half = n.need_static_dim(cos, 2, "rotary embedding");
  if (n.failed()) return {};
  if (half < 1 || 2 * half > size) {
    n.invalid(llvm::formatv("caches of {0} columns turn {1} of {2}", half, 2 * half, size).str());
    return {};
  }
  const auto by_head = [&](Val cache) {
    const Expr batch = n.dim(cache, 0), rows = n.dim(cache, 1);
    return n.reshape(n.cast(cache, n.dtype(x)),
                     flat ? Shape{batch, rows, 1, half} : Shape{batch, 1, rows, half});
  };
  const Val c = by_head(cos), s = by_head(sin);
  Val turned = n.slice(x, 3, 0, 2 * half), first, second;
  Shape pairs = n.shape(x);
  pairs[3] = half;
  if (interleaved) {
    Shape apart = pairs;
    apart.push_back(2);
    turned = n.reshape(turned, apart);
    first = n.reshape(n.slice(turned, 4, 0, 1), pairs);
    second = n.reshape(n.slice(turned, 4, 1, 1), pairs);
  } else {
    first = n.slice(turned, 3, 0, half);
    second = n.slice(turned, 3, half, half);
  }
  const Val real = n.sub(n.mul(c, first), n.mul(s, second)),
            imaginary = n.add(n.mul(s, first), n.mul(c, second));
  std::vector<Val> joined = {real, imaginary};
  if (interleaved) {
    pairs.push_back(1);
    Shape whole = n.shape(x);
    whole[3] = 2 * half;
    joined = {n.reshape(
        n.emit(op::Concat{4}, {n.reshape(real, pairs), n.reshape(imaginary, pairs)}), whole)};
  }
  if (2 * half < size) joined.push_back(n.slice(x, 3, 2 * half, size - 2 * half));
  const Val y = joined.size() == 1 ? joined[0] : n.emit(op::Concat{3}, joined);
  return n.reshape(y, shape);
}

}  // namespace tw::onnx_import
