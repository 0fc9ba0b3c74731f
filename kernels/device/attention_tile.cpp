// Chooses the tile of attention in blocks by a count of cycles, like kernels/device/tile_model.h
// for products (docs/internals/gpu-tiles.md).
#include <algorithm>
#include <array>
#include <numeric>

#include "ir/graph/queries.h"
#include "ir/kernel/stack_limits.h"
#include "ir/multiprocessors.h"
#include "kernels/attention/parts.h"
#include "kernels/common/group_builder.h"
#include "kernels/device/attention.h"
#include "kernels/device/deal.h"

namespace tw {
namespace {

constexpr int64_t kThreadVector = 4;                    // f32 elements that a thread loads at once
constexpr int64_t kFreeQueries = 256, kFreeKeys = 512;  // assumed for free numbers
// Larger sizes count as these, so no number overflows.
constexpr int64_t kMostSize = 1 << 16, kMostHead = 1 << 12;
// Threads of a warp; warps that issue at one time
constexpr int64_t kWarpThreads = 32, kStarts = 4;
// Most registers of a thread; more would spill to the stack. kOthersOfThread are those beside
// scores, sums, weights and operands: for addresses, loops, and copies in flight.
constexpr int64_t kMostOfThread = 200, kOthersOfThread = 56;
// Both limits for threads that multiply together
constexpr int64_t kMostTogether = 248, kOthersTogether = 104;
constexpr int64_t kMostOfBlock = 256;  // most threads of a block
// Instructions of a thread for a score beside its products (scale, mask, maximum, exponential,
// sum), and of a warp for a copy
constexpr int64_t kOfScore = 24, kOfCopy = 6;
constexpr int64_t kMeetings = 4, kMeeting = 30;  // barriers of a block in a step, and cycles of one

int64_t parts(int64_t n, int64_t part) { return (n + part - 1) / part; }
int64_t in_whole(int64_t n, int64_t part) { return parts(n, part) * part; }

class AttentionModel {
 public:
  // keeps: threads keep the weights in registers for the second product
  AttentionModel(const AttentionTile& tile, const AttentionProblem& problem, const Target& target,
                 const TileInstruction* by, bool keeps)
      : t_(tile),
        target_(target),
        m_(multiprocessors(target)),
        p_(problem),
        by_(by),
        keeps_(keeps) {
    rows_ = std::min(p_.rows.value_or(kFreeQueries), kMostSize);
    steps_ = parts(std::min(p_.keys.value_or(kFreeKeys), kMostSize), t_.keys);
    blocks_ = std::min(p_.batches.value_or(1), kMostSize) * parts(rows_, t_.rows);
    depth_ = padded_depth(p_, by_), columns_ = padded_columns(p_, t_, by_);
    threads_ = by_ ? t_.rows / t_.thread_rows * by_->together
                   : t_.rows / t_.thread_rows * t_.across;
    bytes_ = dtype_bytes(p_.type);
    across_ = by_ ? by_->together * digit_elements(by_->sums.digits[0]) / by_->m : t_.across;
  }

  // Blocks that a multiprocessor holds; 0: the tile does not fit.
  int64_t resident() const {
    const int64_t axis = by_ ? by_->together : threads_, local = local_bytes();
    for (const DeviceAxis& one : target_.axes)
      if (one.level == "thread" && one.max > 0 && axis > one.max) return 0;
    if (threads_ < kWarpThreads || threads_ > std::min(kMostOfBlock, target_.max_group)) return 0;
    if (registers() > (by_ ? kMostTogether : kMostOfThread) || local > target_.local_bytes ||
        !fits_stack())
      return 0;
    return std::min({m_.blocks, m_.threads / threads_, m_.local_bytes / local,
                     m_.registers / ((registers() + 7) / 8 * 8 * threads_)});
  }

  std::optional<int64_t> cycles() const {
    const int64_t most = resident();
    if (most == 0) return std::nullopt;
    const int64_t on_one = parts(blocks_, m_.count), rest = on_one % most;
    return on_one / most * cycles_of(most) + (rest > 0 ? cycles_of(rest) : 0);
  }
  // Bytes that all blocks read from the second-level cache, without the queries
  int64_t moved() const { return blocks_ * steps_ * t_.keys * (depth_ + columns_) * bytes_; }

 private:
  // Elements that one copy moves
  int64_t vector() const { return std::max<int64_t>(1, target_.lanes(static_cast<int>(bytes_))); }
  int64_t registers() const {
    const int64_t scores = t_.rows * t_.keys / threads_, sums = t_.rows * columns_ / threads_,
                  weights = keeps_ ? scores * bytes_ / 4 : 0,
                  operands = by_ ? 0
                                 : 4 * (t_.thread_rows +
                                        std::max(t_.keys / t_.across, columns_ / t_.across));
    return scores + sums + weights + operands + (by_ ? kOthersTogether : kOthersOfThread);
  }
  // Each row begins at least a vector apart from the banks of the row before it. Two vectors are
  // counted; the second has room for the parts of a row's sum.
  int64_t local_bytes() const {
    const int64_t apart = 2 * vector(),
                  weights = keeps_ ? 0 : t_.rows * (t_.keys + 2 * t_.across + apart);
    return (t_.rows + t_.keys) * (depth_ + apart) * bytes_ + t_.keys * (columns_ + apart) * bytes_ +
           weights * (by_ ? bytes_ : 4) + t_.rows * across_ * 4;
  }
  // True: the buffers of all threads fit the limits of a kernel's stack.
  bool fits_stack() const {
    const int64_t scores = t_.rows * t_.keys * 4, sums = t_.rows * columns_ * 4,
                  weights = keeps_ ? t_.rows * t_.keys * bytes_ : 0;
    const int64_t few = 2 * t_.rows * across_ * 4 +
                        (by_ ? (by_->m + by_->n) * by_->k * bytes_ * 2 : registers() * 4);
    return std::max(scores, sums) <= kMaxStackBufferBytes &&
           scores + sums + weights + few <= kMaxStackBytes;
  }

  int64_t cycles_of(int64_t together) const {
    const int64_t queries = together * t_.rows * (depth_ + columns_) * bytes_;
    return m_.latency + steps_ * step_cycles(together) + parts(queries, share());
  }
  // The time of the busiest unit, or the time that a block waits for alone, since nothing is copied
  // ahead
  int64_t step_cycles(int64_t together) const {
    const int64_t moved = t_.keys * (depth_ + columns_) * bytes_;
    const int64_t warps = std::min(kStarts, parts(threads_, kWarpThreads));
    const int64_t turns = parts(t_.keys * std::max(depth_, columns_),
                                threads_ * vector() * kCopiesAtOnce);
    const int64_t alone = turns * m_.latency + kMeetings * kMeeting +
                          parts(products() * kStarts / warps, rate()) +
                          parts(instructions(), warps);
    return std::max({parts(together * products(), rate()),
                     parts(together * (moved + read_bytes()), m_.local_rate),
                     parts(together * moved, share()), parts(together * instructions(), kStarts),
                     alone});
  }
  int64_t products() const { return t_.rows * t_.keys * (depth_ + columns_); }
  int64_t rate() const {
    return std::max<int64_t>(1, by_ ? m_.multiply_adds(p_.type, p_.tf32) : m_.f32);
  }
  // Bytes that the block's warps read from the memory they share. With an instruction, a warp reads
  // its rows and all keys and values. Single threads load vectors. Threads of a warp that read the
  // same address get it at once, but no load takes less than one turn of all banks.
  int64_t read_bytes() const {
    const int64_t warps = parts(threads_, kWarpThreads);
    if (by_) {
      const int64_t rows = parts(t_.rows, warps), weights = keeps_ ? 0 : rows * t_.keys;
      return warps * (rows * depth_ + weights + t_.keys * (depth_ + columns_)) * bytes_;
    }
    const auto loads = [&](int64_t count, int64_t threads, int64_t bytes) {
      return count * std::max(threads * 4 * bytes, m_.local_rate);
    };
    const int64_t lanes = std::min(t_.across, kWarpThreads), rows = kWarpThreads / lanes;
    const int64_t of_keys = loads(t_.thread_rows, rows, bytes_) +
                            loads(t_.keys / t_.across, lanes, bytes_),
                  of_values = loads(t_.thread_rows, rows, 4) +
                              loads(columns_ / t_.across, lanes, bytes_);
    return warps * (depth_ / 4 * of_keys + t_.keys / 4 * of_values);
  }
  int64_t instructions() const {
    const int64_t copies = parts(t_.keys * (depth_ + columns_), kWarpThreads * vector()),
                  scores = parts(t_.rows * t_.keys, kWarpThreads),
                  sums = parts(t_.rows * columns_, kWarpThreads);
    const int64_t multiplied = by_ ? products() / (by_->m * by_->n * by_->k)
                                   : parts(products(), kWarpThreads);
    return copies * kOfCopy + scores * kOfScore + sums + multiplied;
  }
  int64_t share() const {
    return std::max<int64_t>(
        1, std::min(m_.local_rate / 2,
                    m_.l2_rate / std::max<int64_t>(1, std::min(m_.count, blocks_))));
  }

  const AttentionTile& t_;
  const Target& target_;
  const Multiprocessors m_;
  const AttentionProblem p_;
  const TileInstruction* by_;
  bool keeps_;
  int64_t rows_ = 1, steps_ = 1, blocks_ = 1, depth_ = 1, columns_ = 1, threads_ = 1, bytes_ = 4;
  int64_t across_ = 1;  // threads that share a row
};

struct Candidate {
  AttentionTile tile;
  int64_t cycles = 0, moved = 0;
};
// The candidate that moves the fewest bytes, among those within a tenth of the fewest cycles. The
// model cannot tell these apart.
AttentionTile least_moved(const std::vector<Candidate>& all) {
  const int64_t fewest = std::ranges::min_element(all, {}, &Candidate::cycles)->cycles;
  const Candidate* best = nullptr;
  for (const Candidate& one : all)
    if (one.cycles <= fewest + fewest / 10 && (!best || one.moved < best->moved)) best = &one;
  return best->tile;
}

// Candidates in the order that breaks ties: larger tiles first
std::vector<AttentionTile> candidates(const AttentionProblem& problem, const TileInstruction* by) {
  std::vector<AttentionTile> all;
  for (const int64_t rows : {128, 64, 32, 16, 8})
    for (const int64_t keys : {128, 64, 32, 16}) {
      // A side of the tile is less than twice the tensor's side.
      if (problem.rows && rows >= 2 * *problem.rows && rows > (by ? by->m : 8)) continue;
      if (problem.keys && keys >= 2 * *problem.keys && keys > 16) continue;
      if (by) {
        if (rows % by->m == 0 && keys % std::lcm(by->n, by->k) == 0)
          all.push_back({rows, keys, by->m, 1, true});
        continue;
      }
      for (const int64_t across : {8, 16, 32})
        for (const int64_t thread_rows : {4, 2, 1})
          if (rows % thread_rows == 0 && keys % across == 0)
            all.push_back({rows, keys, thread_rows, across, false});
    }
  return all;
}

}  // namespace

int64_t value_vector(const AttentionProblem& problem, const AttentionTile& tile) {
  for (const int64_t vector : {kThreadVector, kThreadVector / 2})
    if (problem.columns >= tile.across * vector) return vector;
  return 1;
}

int64_t padded_depth(const AttentionProblem& problem, const TileInstruction* by) {
  return in_whole(problem.depth, by ? by->k : kThreadVector);
}

int64_t padded_columns(const AttentionProblem& problem, const AttentionTile& tile,
                       const TileInstruction* by) {
  return in_whole(problem.columns, by ? by->n : tile.across * value_vector(problem, tile));
}

bool keeps_weights(const TileInstruction& by) {
  const auto thread = [](const OperandPlacement& placement, int64_t row, int64_t column) {
    return *as_const(simplify(thread_at(placement.digits[0], Expr(row)) +
                              thread_at(placement.digits[1], Expr(column))));
  };
  for (int64_t row = 0; row < by.m; ++row)
    for (int64_t key = 0; key < by.k; ++key)
      if (thread(by.left, row, key) != thread(by.sums, row, key % by.n)) return false;
  return true;
}

std::optional<TileInstruction> attention_instruction(const Target& target,
                                                     const AttentionProblem& problem) {
  std::vector<TileInstruction> all = tile_instructions(target, {problem.type, problem.tf32});
  // Threads that multiply together use one axis, and the groups of them use another.
  if (all.empty() || std::ranges::count(target.axes, "thread", &DeviceAxis::level) < 2)
    return std::nullopt;
  return std::move(all.front());
}

std::vector<AttentionTile> attention_tiles(const Target& target, const AttentionProblem& problem,
                                           std::string* why) {
  const auto none = [&](const std::string& reason) {
    if (why) *why = reason;
    return std::vector<AttentionTile>();
  };
  if (!block_memory(target)) return none("its blocks of threads share no memory");
  if (std::max(problem.depth, problem.columns) > kMostHead)
    return none("a head has more than " + std::to_string(kMostHead) + " elements");
  const auto by = attention_instruction(target, problem);
  const TileInstruction* instruction = by ? &*by : nullptr;
  const bool keeps = by && keeps_weights(*by);
  std::vector<Candidate> all;
  for (const AttentionTile& tile : candidates(problem, instruction)) {
    const AttentionModel model(tile, problem, target, instruction, keeps);
    if (const auto cycles = model.cycles()) all.push_back({tile, *cycles, model.moved()});
  }
  if (all.empty())
    return none("no step of heads of " + std::to_string(problem.depth) + " and " +
                std::to_string(problem.columns) + " elements fits its " +
                std::to_string(target.local_bytes) + " bytes of shared memory and its registers");
  std::vector<AttentionTile> tiles = {least_moved(all)};
  std::ranges::stable_sort(all, {}, &Candidate::cycles);
  for (const Candidate& one : all)
    if (!(one.tile == tiles.front())) tiles.push_back(one.tile);
  return tiles;
}

std::optional<AttentionTile> attention_tile(const Target& target, const AttentionProblem& problem,
                                            std::string* why) {
  const std::vector<AttentionTile> tiles = attention_tiles(target, problem, why);
  return tiles.empty() ? std::nullopt : std::optional(tiles.front());
}

namespace {

std::optional<AttentionProblem> problem_of(const GroupBuilder& b, const Node& product) {
  const AttentionParts parts = attention_parts(b, product);
  return attention_problem(b.graph, *parts.scores, *parts.product,
                           [&](ValueId v) { return b.inside(v); });
}

}  // namespace

std::optional<Lowered<StreamingAttentionStages>> attention_in_blocks(GroupBuilder& b,
                                                                     const Node& product,
                                                                     const Target& device) {
  const auto problem = problem_of(b, product);
  const auto tile = problem ? attention_tile(device, *problem) : std::nullopt;
  if (!tile) return std::nullopt;
  return define_streaming_attention(b, product, *problem, tile->rows, tile->keys);
}

std::vector<Lowered<StreamingAttentionStages>> attention_in_other_blocks(const Graph& graph,
                                                                         const Group& group,
                                                                         const Target& device) {
  constexpr size_t kMostOthers = 12;
  const Node& product = graph.node(group.anchor);
  const bool attends = std::ranges::any_of(
      group.nodes, [&](NodeId id) { return get_if<op::Softmax>(&graph.node(id)) != nullptr; });
  std::vector<Lowered<StreamingAttentionStages>> all;
  if (device.axes.empty() || !attends || !get_if<op::MatMul>(&product)) return all;
  const auto problem = problem_of(GroupBuilder(graph, group), product);
  if (!problem) return all;
  std::vector<std::pair<int64_t, int64_t>> known;
  for (const AttentionTile& tile : attention_tiles(device, *problem)) {
    if (std::ranges::count(known, std::pair(tile.rows, tile.keys)) > 0) continue;
    known.emplace_back(tile.rows, tile.keys);
    if (known.size() == 1) continue;  // the usual one
    GroupBuilder b(graph, group);
    all.push_back(define_streaming_attention(b, product, *problem, tile.rows, tile.keys));
    if (all.size() == kMostOthers) break;
  }
  return all;
}

}  // namespace tw
