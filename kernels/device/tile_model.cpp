#include "kernels/device/tile_model.h"

#include <algorithm>
#include <tuple>

#include "ir/kernel/stack_limits.h"
#include "kernels/device/multiprocessor_model.h"
#include "support/diag.h"

namespace tw {
namespace {

constexpr int64_t kSmallest = 24;   // fewest rows or columns; fewer share little of a tile
constexpr int64_t kShallowest = 8;  // least depth
// Larger sizes count as these, so no number overflows.
constexpr int64_t kMostExtent = 1 << 16, kMostBatches = 64;

// Most threads of a block, and most registers of a thread; more would spill to the stack.
constexpr int64_t kMostThreads = 256, kMostRegisters = 200;
constexpr int64_t kOtherRegisters = 48;  // for addresses, loops and conditions
// Most copies of a thread in a step, which are straight-line code: of neighbouring elements, and of
// elements of windows
constexpr int64_t kMostTurns = 32, kMostGathers = 8;
constexpr int64_t kGatherRegisters = 4;              // for an element of a window
constexpr int64_t kMostParts = 16, kLeastSteps = 4;  // parts of a depth, and steps of a part

// Cycles between two additions to one sum, by an instruction of several threads and by a single
// thread
constexpr int64_t kInstructionLatency = 33, kSumLatency = 4;
// Instructions of a warp for a copy: of neighbouring elements, and of an element of a window
constexpr int64_t kCopy = 6, kGather = 24;
constexpr int64_t kLaunchesPerSecond = 500000;  // launches of kernels in a row

class TileModel {
 public:
  TileModel(const BlockTile& tile, const TileProblem& problem, const Target& target,
            const TileInstruction* instruction)
      : t_(tile), p_(problem), target_(target), m_(multiprocessors(target)), by_(instruction) {
    m_.latency = std::min(m_.latency, kMostLatency);
    bytes_ = dtype_bytes(p_.operands.type);
    rows_ = std::min(p_.rows.value_or(TileProblem::kFreeRows), kMostExtent);
    columns_ = std::min(p_.columns, kMostExtent);
    depth_ = std::min(p_.depth, kMostExtent);
    batches_ = std::min(p_.batches.value_or(1), kMostBatches);
    steps_ = parts_of(depth_, t_.depth * t_.parts);
    blocks_ = batches_ * parts_of(rows_, t_.rows) * parts_of(columns_, t_.columns) * t_.parts;
    warps_ = parts_of(t_.threads(), kWarp);
  }

  int64_t resident() const {
    if (!tile_fault(t_, target_, p_.operands.type, by_).empty()) return 0;
    const int64_t registers = thread_registers(t_, p_.operands.type, by_),
                  stages = steps_ < t_.stages ? 1 : t_.stages, local = stages * step_bytes();
    if (registers + copy_registers() > kMostRegisters || local > target_.local_bytes) return 0;
    const int64_t sums = t_.rows * t_.columns * 4;
    if (sums > kMaxStackBufferBytes || sums + local + fragment_bytes() > kMaxStackBytes) return 0;
    return std::min({m_.blocks, m_.threads / t_.threads(),
                     m_.registers / (whole_parts(registers, kRegistersTogether) * t_.threads()),
                     m_.local_bytes / local});
  }

  std::optional<int64_t> cycles() const {
    const int64_t most = resident();
    if (most == 0) return std::nullopt;
    const int64_t on_one = parts_of(blocks_, m_.count), rest = on_one % most;
    const int64_t busy = on_one / most * cycles_of(most) + (rest > 0 ? cycles_of(rest) : 0);
    return std::max(busy, m_.latency + memory_cycles(most)) + total_cycles();
  }

 private:
  // Bytes of a step's copies in the memory that a block shares. Rows that an instruction reads are
  // kept in different banks (schedule_tiles.cpp).
  int64_t step_bytes() const {
    const auto row = [&](int64_t elements, const std::vector<PlacementDigit>& digits) {
      int64_t apart = std::max<int64_t>(1, target_.lanes(static_cast<int>(bytes_)));
      for (const PlacementDigit& digit : digits)
        if (digit.thread != 0) apart = std::max(apart, digit.stride * digit.extent);
      return whole_parts(std::max<int64_t>(0, elements - apart), 2 * apart) + apart;
    };
    if (!by_) return (t_.rows + t_.columns) * t_.depth * bytes_;
    return (t_.rows * row(t_.depth, by_->left.digits[1]) +
            t_.depth * row(t_.columns, by_->right.digits[0])) *
           bytes_;
  }

  // Registers of a thread for its copies: windows keep the places of their elements.
  int64_t copy_registers() const {
    return p_.gathered ? kGatherRegisters * parts_of(t_.depth * t_.rows, t_.threads()) : 0;
  }

  // Bytes of the operands that threads load together for an instruction
  int64_t fragment_bytes() const { return by_ ? (t_.thread_rows + t_.lanes) * by_->k * bytes_ : 0; }

  // Cycles of `together` blocks on a multiprocessor, from their first copies to their last stores
  int64_t cycles_of(int64_t together) const {
    const int64_t stored = together * t_.rows * t_.columns * 4;
    return m_.latency + steps_ * step_cycles(together) + parts_of(stored, memory_share());
  }

  // Cycles of a step of the depth: those of the busiest unit, or those that one block waits for
  int64_t step_cycles(int64_t together) const {
    const int64_t moved = together * (t_.rows + t_.columns) * t_.depth * bytes_;
    const int64_t waits = t_.stages > 1 && steps_ >= t_.stages
                              ? std::max(chain() + kBarrier, m_.latency / (t_.stages - 1))
                              : m_.latency + chain() + 2 * kBarrier;
    return std::max({multiply_cycles(together), parts_of(together * local_bytes(), m_.local_rate),
                     parts_of(moved, memory_share()),
                     parts_of(together * instructions(), kPartitions), waits});
  }

  int64_t rate() const {
    return by_ ? m_.multiply_adds(p_.operands.type, p_.operands.tf32) : m_.f32;
  }

  // Warps do not move between partitions, so the partition with the most warps is busy longest.
  int64_t multiply_cycles(int64_t together) const {
    const int64_t of_warp = parts_of(t_.rows * t_.columns * t_.depth, warps_);
    return parts_of(parts_of(together * warps_, kPartitions) * of_warp * kPartitions, rate());
  }

  // Cycles of a warp for a step if nothing else runs. Its sums wait for each other.
  int64_t chain() const {
    const int64_t deep = by_ ? by_->k : 1,
                  sums = t_.rows * t_.columns / warps_ * deep * kPartitions;
    return t_.depth / deep *
           std::max(by_ ? kInstructionLatency : kSumLatency, parts_of(sums, rate()));
  }

  // Bytes that a block's warps move in a step through the memory they share. Threads of a warp that
  // read the same address get it at once.
  int64_t local_bytes() const {
    int64_t read = (t_.thread_rows + t_.lanes) * bytes_;
    if (!by_) {
      const int64_t lanes = std::min(kWarp, t_.columns / t_.lanes), rows = kWarp / lanes;
      read = std::max(rows * t_.thread_rows * bytes_, m_.local_rate) +
             std::max(lanes * t_.lanes * bytes_, m_.local_rate);
    }
    return (warps_ * read + (t_.rows + t_.columns) * bytes_) * t_.depth;
  }

  // Elements that one copy moves if they are adjacent
  int64_t vector() const { return std::max<int64_t>(1, target_.lanes(static_cast<int>(bytes_))); }
  int64_t left_vector() const { return p_.gathered || p_.between ? 1 : vector(); }

  // Instructions of a block's warps in a step, besides the products of single threads
  int64_t instructions() const {
    const int64_t left = parts_of(t_.rows * t_.depth, kWarp * left_vector()),
                  right = parts_of(t_.columns * t_.depth, kWarp * vector());
    const int64_t copies = left * (p_.gathered ? kGather : kCopy) + right * kCopy;
    if (!by_)
      return copies + warps_ * t_.depth * parts_of(t_.thread_rows + t_.lanes, vector()) +
             parts_of(t_.rows * t_.columns * t_.depth, kWarp);
    const int64_t products = t_.thread_rows / by_->m * (t_.lanes / by_->n),
                  loads = t_.thread_rows / by_->m + t_.lanes / by_->n;
    return copies + warps_ * (t_.depth / by_->k) * (products + 2 * loads);
  }

  // Bytes a cycle of the second-level cache for each multiprocessor with blocks
  int64_t memory_share() const {
    const int64_t busy = std::min(m_.count, blocks_);
    return std::max<int64_t>(1, std::min(m_.local_rate / 2, m_.l2_rate / busy));
  }

  // Cycles for the bytes that pass through memory. The left operand is read once, and neighbouring
  // tiles read it at the same time. The right one is read once if the cache keeps it, and otherwise
  // once for all blocks that run at the same time.
  int64_t memory_cycles(int64_t together) const {
    const auto known = [](int64_t said, int64_t counted) {
      return said > 0 ? std::min(said, counted) : counted;
    };
    const int64_t left = known(p_.left_bytes, batches_ * rows_ * depth_ * bytes_),
                  right = known(p_.right_bytes, batches_ * columns_ * depth_ * bytes_),
                  sums = batches_ * rows_ * columns_ * bytes_,
                  waves = parts_of(blocks_, m_.count * together),
                  rows_of_tiles = parts_of(rows_, t_.rows);
    const int64_t times = left + right <= target_.l2_bytes ? 1 : std::min(waves, rows_of_tiles);
    const bool kept = p_.between && left + sums <= target_.l2_bytes;  // in the cache
    return parts_of((kept ? 0 : left + sums) + times * right, m_.memory_rate);
  }

  // Cycles for parts of sums: they are stored, and a further launch adds them.
  int64_t total_cycles() const {
    if (t_.parts == 1) return 0;
    const int64_t moved = batches_ * rows_ * columns_ * 4 * 2 * t_.parts;
    return launch_cycles(target_, moved, 0);
  }

  const BlockTile& t_;
  const TileProblem& p_;
  const Target& target_;
  Multiprocessors m_;
  const TileInstruction* by_;
  int64_t bytes_ = 4, rows_ = 1, columns_ = 1, depth_ = 1, batches_ = 1;
  int64_t steps_ = 1, blocks_ = 1, warps_ = 1;
};

// The ways to divide tiles among the threads of a block, or among those that execute an instruction
// together
std::vector<BlockTile> shares(const TileProblem& problem, const TileInstruction* instruction) {
  std::vector<BlockTile> found;
  const std::vector<int64_t> sides = {32, 64, 128, 256},
                             own = instruction ? std::vector<int64_t>{16, 32, 64}
                                               : std::vector<int64_t>{4, 8},
                             depths = instruction
                                          ? std::vector<int64_t>{instruction->k, 2 * instruction->k,
                                                                 4 * instruction->k}
                                          : std::vector<int64_t>{8, 16, 32};
  // A side is less than twice the tensor's, except for the smallest side.
  const auto fits = [](int64_t side, int64_t extent) { return side == 32 || side < 2 * extent; };
  BlockTile tile;
  if (instruction) tile.together = instruction->together;
  for (const int64_t rows : sides)
    for (const int64_t columns : sides)
      for (const int64_t depth : depths)
        for (const int64_t thread_rows : own)
          for (const int64_t lanes : own) {
            tile.rows = rows, tile.columns = columns, tile.depth = depth;
            tile.thread_rows = thread_rows, tile.lanes = lanes;
            if (rows % thread_rows == 0 && columns % lanes == 0 &&
                fits(rows, problem.rows.value_or(TileProblem::kFreeRows)) &&
                fits(columns, problem.columns) &&
                (depth == depths.front() || depth < 2 * problem.depth))
              found.push_back(tile);
          }
  return found;
}

}  // namespace

int64_t thread_registers(const BlockTile& tile, DType type, const TileInstruction* instruction) {
  const int64_t sums = tile.thread_rows * tile.lanes / tile.together;
  if (!instruction) return sums + tile.thread_rows + tile.lanes + kOtherRegisters;
  const int64_t operands = (tile.thread_rows + tile.lanes) * instruction->k / tile.together;
  return sums + parts_of(operands * dtype_bytes(type), 4) + kOtherRegisters;
}

int64_t resident_blocks(const BlockTile& tile, const TileProblem& problem, const Target& target,
                        const TileInstruction* instruction) {
  return TileModel(tile, problem, target, instruction).resident();
}

std::optional<int64_t> tile_cycles(const BlockTile& tile, const TileProblem& problem,
                                   const Target& target, const TileInstruction* instruction) {
  return TileModel(tile, problem, target, instruction).cycles();
}

int64_t product_cycles(const BlockTile& usual, const TileProblem& problem, const Target& target) {
  const std::vector<TileInstruction> all = tile_instructions(target, problem.operands);
  const TileInstruction* by = all.empty() ? nullptr : &all[static_cast<size_t>(usual.instruction)];
  const std::optional<int64_t> cycles = tile_cycles(usual, problem, target, by);
  TW_CHECK(cycles.has_value(), "the usual tile does not fit '{0}'", target.name);
  return *cycles;
}

int64_t launch_cycles(const Target& target, int64_t bytes, int64_t multiply_adds) {
  Multiprocessors m = multiprocessors(target);
  m.latency = std::min(m.latency, kMostLatency);
  const int64_t rate = bytes <= target.l2_bytes ? m.l2_rate : m.memory_rate;
  return m.clock / kLaunchesPerSecond + m.latency +
         std::max(parts_of(bytes, rate), parts_of(multiply_adds, m.count * m.f32));
}

std::vector<BlockTile> candidate_tiles(const TileProblem& problem, const Target& target,
                                       const TileInstruction* instruction) {
  std::vector<BlockTile> found;
  const bool known = problem.batches && problem.rows;
  const int64_t vector = std::max(1, target.lanes(dtype_bytes(problem.operands.type)));
  const std::vector<int64_t> rings = copies_alone(target) ? std::vector<int64_t>{1, 2, 3, 4}
                                                          : std::vector<int64_t>{1};
  for (BlockTile tile : shares(problem, instruction)) {
    const int64_t turns = tile.depth * tile.rows /
                          (problem.gathered || problem.between ? 1 : vector) / tile.threads();
    if (tile.threads() < kWarp || tile.threads() > kMostThreads ||
        turns > (problem.gathered ? kMostGathers : kMostTurns))
      continue;
    for (const int64_t stages : rings)
      for (int64_t parts = 1; parts <= (known ? kMostParts : 1); parts *= 2) {
        if (parts > 1 && problem.depth < parts * tile.depth * kLeastSteps) break;
        tile.stages = stages, tile.parts = parts;
        found.push_back(tile);
      }
  }
  return found;
}

std::optional<BlockTile> block_tile(const Target& target, const TileProblem& problem) {
  if (target.axes.empty() || !block_memory(target)) return std::nullopt;
  std::vector<TileInstruction> instructions = tile_instructions(target, problem.operands);
  const DType type = problem.operands.type;
  if (instructions.empty() && (!is_float(type) || type == DType::f64)) return std::nullopt;
  if (problem.rows.value_or(kSmallest) < kSmallest || problem.columns < kSmallest ||
      problem.depth < kShallowest)
    return std::nullopt;
  std::optional<BlockTile> best;
  // cycles, then parts, then the negated size of the tile
  std::tuple<int64_t, int64_t, int64_t> least;
  const auto consider = [&](const TileInstruction* instruction, int64_t index) {
    for (BlockTile tile : candidate_tiles(problem, target, instruction)) {
      const std::optional<int64_t> cycles = tile_cycles(tile, problem, target, instruction);
      if (!cycles) continue;
      const std::tuple cost{*cycles, tile.parts, -tile.rows * tile.columns};
      if (best && cost >= least) continue;
      tile.instruction = index;
      best = tile, least = cost;
    }
  };
  if (instructions.empty()) consider(nullptr, 0);
  for (size_t i = 0; i < instructions.size(); ++i)
    consider(&instructions[i], static_cast<int64_t>(i));
  return best;
}

}  // namespace tw
