// Importer of TfIdfVectorizer: counts how often each n-gram of a pool occurs in a row of numbers.
#include <algorithm>

#include "frontend/onnx/ops/strings/strings.h"

namespace tw::onnx_import {
namespace {

struct NgramPool {
  std::vector<Ints> grams;  // all of one length
  Ints outputs;             // output of each n-gram
};

// The pool's n-grams by length, from 1 on: ngram_counts[i] is where those of length i + 1 begin.
std::vector<NgramPool> read_pool(NodeImport& n, const Ints& pool) {
  const Ints begins = n.integers("ngram_counts").value_or(Ints()),
             outputs = n.integers("ngram_indexes").value_or(Ints());
  std::vector<NgramPool> lengths;
  size_t number = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1, begin = begins[i],
                  end = i + 1 < begins.size() ? begins[i + 1] : std::ssize(pool);
    if (begin < 0 || end < begin || end > std::ssize(pool) || (end - begin) % length != 0) {
      n.invalid("attribute ngram_counts does not part the pool");
      return {};
    }
    NgramPool& own = lengths.emplace_back();
    for (int64_t at = begin; at < end; at += length, ++number) {
      if (number >= outputs.size()) {
        n.invalid("attribute ngram_indexes has fewer entries than the pool n-grams");
        return {};
      }
      own.grams.emplace_back(pool.begin() + at, pool.begin() + at + length);
      own.outputs.push_back(outputs[number]);
    }
  }
  return lengths;
}

// Element `at` of each n-gram, for comparison with a window of a row: i64[grams].
Val column(NodeImport& n, const std::vector<Ints>& grams, size_t at) {
  Tensor tensor = Tensor::zeros(DType::i64, {std::ssize(grams)});
  for (size_t g = 0; g < grams.size(); ++g) tensor.as<int64_t>()[g] = grams[g][at];
  return n.builder().add_constant(tensor);
}

// [rows, grams]: how often each n-gram occurs with `skipped` elements left out between two of its
// own.
Val counted(NodeImport& n, Val x, const NgramPool& pool, int64_t skipped) {
  const auto length = std::ssize(pool.grams[0]);
  const Expr windows = n.simplified(n.dim(x, 1) - Expr((length - 1) * (skipped + 1)));
  if (const auto none = as_const(windows); none && *none <= 0) return {};
  Val hit;
  for (int64_t k = 0; k < length && !n.failed(); ++k) {
    const Val window = n.slice(x, 1, Expr(k * (skipped + 1)), windows);
    const Val same = n.binary(BinaryOp::eq, n.reshape(window, {n.dim(x, 0), windows, 1}),
                              column(n, pool.grams, static_cast<size_t>(k)));
    hit = hit.valid() ? n.binary(BinaryOp::logical_and, hit, same) : same;
  }
  return n.failed() ? Val{} : n.reduce(ReduceKind::sum, n.cast(hit, DType::f32), {1}, false);
}

Val floats(NodeImport& n, const std::vector<float>& values) {
  Tensor tensor = Tensor::zeros(DType::f32, {std::ssize(values)});
  std::ranges::copy(values, tensor.as<float>().begin());
  return n.builder().add_constant(tensor);
}

// Reorders the counts to the order of the outputs; an output without an n-gram is 0.
Val in_order(NodeImport& n, Val counts, const Ints& outputs, int64_t width) {
  Tensor from = Tensor::zeros(DType::i64, {width});
  for (int64_t& place : from.as<int64_t>()) place = std::ssize(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    int64_t& place = from.as<int64_t>()[static_cast<size_t>(outputs[i])];
    if (place != std::ssize(outputs)) {
      n.fail("two n-grams of one output");
      return {};
    }
    place = static_cast<int64_t>(i);
  }
  const Val wider = n.emit(op::Pad{PadMode::constant, {0, 0}, {0, 1}}, {counts});
  return n.emit(op::Gather{1}, {wider, n.builder().add_constant(from)});
}

Val weighted(NodeImport& n, Val counts, int64_t width) {
  const std::string mode = n.text("mode", "");
  if (mode == "TF") return counts;
  if (mode != "IDF" && mode != "TFIDF") {
    n.invalid("attribute mode is '" + mode + "'");
    return {};
  }
  std::vector<float> weights = n.reals("weights").value_or(std::vector<float>());
  if (weights.empty()) weights.assign(static_cast<size_t>(width), 1);
  if (std::ssize(weights) != width) {
    n.invalid(llvm::formatv("{0} weights for {1} outputs", weights.size(), width).str());
    return {};
  }
  const Val by = mode == "IDF" ? n.min(n.scalar(1, counts), counts) : counts;
  return n.mul(by, floats(n, weights));
}

}  // namespace

void count_ngrams(NodeImport& n, Val given, const Ints& pool) {
  constexpr int64_t kMostOutputs = int64_t{1} << 20, kMostGrams = 4096;
  const std::vector<NgramPool> lengths = read_pool(n, pool);
  const Ints indexes = n.integers("ngram_indexes").value_or(Ints());
  const int64_t least = n.integer("min_gram_length", 1), most = n.integer("max_gram_length", 1),
                skips = n.integer("max_skip_count", 0);
  if (n.failed()) return;
  if (n.rank(given) != 1 && n.rank(given) != 2) return n.invalid("input 0 is no vector, no matrix");
  if (indexes.empty() || std::ranges::min(indexes) < 0 || std::ranges::max(indexes) >= kMostOutputs)
    return n.invalid("attribute ngram_indexes is empty, or goes beyond 0 to 2^20");
  if (std::ssize(indexes) > kMostGrams) return n.fail("more than 4096 n-grams in the pool");
  if (least < 1 || most < least || skips < 0 || skips > 64)
    return n.invalid("attributes min_gram_length, max_gram_length or max_skip_count");
  const int64_t width = std::ranges::max(indexes) + 1;
  const bool row = n.rank(given) == 1;
  const Val x = row ? n.reshape(given, {1, n.dim(given, 0)}) : given;
  std::vector<Val> parts;
  Ints outputs;
  for (int64_t length = least; length <= std::min<int64_t>(most, std::ssize(lengths)); ++length) {
    const NgramPool& own = lengths[static_cast<size_t>(length - 1)];
    if (own.grams.empty()) continue;
    Val sum;
    for (int64_t skipped = 0; skipped <= (length == 1 ? 0 : skips); ++skipped) {
      const Val counts = counted(n, x, own, skipped);
      if (counts.valid()) sum = sum.valid() ? n.add(sum, counts) : counts;
    }
    if (n.failed()) return;
    if (!sum.valid()) continue;
    parts.push_back(sum);
    outputs.insert(outputs.end(), own.outputs.begin(), own.outputs.end());
  }
  Val counts = parts.empty()
                   ? n.expand(n.scalar(0, DType::f32), {n.dim(x, 0), Expr(width)})
                   : in_order(n, parts.size() == 1 ? parts[0] : n.emit(op::Concat{1}, parts),
                              outputs, width);
  if (n.failed()) return;
  counts = weighted(n, counts, width);
  if (!n.failed()) n.set(row ? n.reshape(counts, {Expr(width)}) : counts);
}

}  // namespace tw::onnx_import
