#include "kernels/device/window_model.h"

#include <algorithm>
#include <tuple>

#include "ir/kernel/stack_limits.h"
#include "kernels/device/multiprocessor_model.h"
#include "kernels/device/tiles.h"

namespace tw {
namespace {

constexpr int64_t kWavefront = 128;  // bytes that the first-level cache gives in a cycle
// Threads of a block, and registers of one
constexpr int64_t kMostWindowThreads = 256, kMostWindowRegisters = 128;
constexpr int64_t kBesides = 40;  // registers for addresses, loops and conditions
// Vectors that a thread loads and multiply-adds that it starts in one straight line
constexpr int64_t kMostLoads = 96, kMostStraight = 1024;
// Instructions of a load that may meet the padding, and of one that may not; of a thread besides
constexpr int64_t kGuarded = 4, kPlain = 2, kBegin = 40;
constexpr int64_t kMostImages = 1 << 16;

class WindowModel {
 public:
  WindowModel(const WindowTile& tile, const WindowProblem& problem, const Target& target)
      : t_(tile), p_(problem), target_(target), m_(multiprocessors(target)) {
    m_.latency = std::min(m_.latency, kMostLatency);
    warps_ = parts_of(t_.threads(), kWarp);
    blocks_ = std::min(p_.images, kMostImages) * parts_of(p_.channels, t_.deep) *
              parts_of(p_.line.out, t_.lines * t_.down) *
              parts_of(p_.row.out, t_.pixels * t_.across);
    steps_ = p_.depth / p_.step;
  }

  std::optional<int64_t> cycles() const {
    const int64_t most = resident();
    if (most == 0) return std::nullopt;
    const int64_t on_one = parts_of(blocks_, m_.count), rest = on_one % most;
    const int64_t busy = on_one / most * cycles_of(most) + (rest > 0 ? cycles_of(rest) : 0);
    return std::max(busy, m_.latency + memory_cycles());
  }

 private:
  int64_t resident() const {
    if (!window_fault(t_, p_, target_).empty()) return 0;
    const int64_t registers = whole_parts(window_registers(t_, p_), kRegistersTogether),
                  bytes = window_bytes(t_, p_);
    return std::min({m_.blocks, m_.threads / t_.threads(),
                     m_.registers / (registers * t_.threads()),
                     bytes == 0 ? m_.blocks : m_.local_bytes / bytes});
  }

  // Of `together` blocks on a multiprocessor: what is busy longest, and what a block waits for.
  int64_t cycles_of(int64_t together) const {
    const int64_t warps = together * warps_;
    // Warps do not move between partitions: the one with the most is busy longest
    const int64_t products = parts_of(warps, kPartitions) * warp_products() * kPartitions * kWarp,
                  busy = std::max({parts_of(products, m_.f32),
                                   parts_of(warps, kPartitions) * warp_instructions(),
                                   together * first_level(),
                                   parts_of(together * block_bytes(), memory_share())});
    const int64_t waits = t_.place == WindowPlace::line ? p_.line.taps * p_.outer_taps : 1;
    return busy + (steps_ * waits + 1) * m_.latency +
           (t_.place == WindowPlace::block ? 2 * kBarrier : 0);
  }

  // Multiply-adds of a thread.
  int64_t warp_products() const { return t_.pixels * t_.lines * p_.lanes * p_.depth * taps(); }
  int64_t taps() const { return p_.line.taps * p_.row.taps * p_.outer_taps; }

  // Vectors of the input that a thread loads for all of its sums.
  int64_t window_loads() const {
    if (!p_.copied ||
        t_.place == WindowPlace::block)  // of several taps that read one, it keeps one
      return steps_ * p_.outer_taps * kept(p_.line, t_.lines) * kept(p_.row, t_.pixels);
    if (t_.place == WindowPlace::line)
      return steps_ * p_.outer_taps * p_.line.taps * t_.lines * p_.row.span(t_.pixels);
    return steps_ * p_.outer_taps * p_.line.span(t_.lines) * p_.row.span(t_.pixels);
  }
  static int64_t kept(const WindowAxis& axis, int64_t outputs) {
    return std::min(axis.span(outputs), outputs * axis.taps);
  }
  int64_t weight_loads() const { return p_.depth * taps(); }
  int64_t stores() const { return t_.pixels * t_.lines; }

  int64_t warp_instructions() const {
    const int64_t loads = window_loads(),
                  guarded = t_.place == WindowPlace::block ? kPlain : kGuarded;
    // Shorter floats become longer ones
    const int64_t widened = p_.bytes < 4 ? loads * p_.loaded + weight_loads() * p_.lanes : 0;
    return kBegin + warp_products() + loads * guarded + weight_loads() + widened +
           stores() * (kPlain + p_.lanes) + copies() * kGuarded * 2;
  }

  // Vectors that a thread copies for its block.
  int64_t copies() const {
    if (t_.place != WindowPlace::block) return 0;
    return parts_of(window_bytes(t_, p_), vector() * t_.threads());
  }
  int64_t vector() const { return p_.loaded * p_.bytes; }

  // Turns of the first-level cache, or of the memory that a block shares, for one block. Neighbours
  // of a row are `distance` vectors apart, and what is between them comes along.
  int64_t first_level() const {
    const int64_t apart = t_.pixels * p_.row.stride;
    return warps_ * (window_loads() * turns(apart) + weight_loads() + stores() * turns(t_.pixels) +
                     copies() * 2 * turns(1));
  }
  int64_t turns(int64_t distance) const {
    const int64_t along = std::min(t_.across, kWarp), rows = parts_of(kWarp, along);
    return std::min(kWarp, rows * parts_of(along * distance * vector(), kWavefront));
  }

  // Bytes of the second-level cache that a block reads and writes.
  int64_t block_bytes() const {
    const auto read = [](const WindowAxis& axis, int64_t outputs) {
      return std::min(axis.span(std::min(outputs, axis.out)), axis.in + axis.taps);
    };
    const int64_t in = read(p_.line, t_.lines * t_.down) * read(p_.row, t_.pixels * t_.across) *
                       p_.outer_taps * steps_ * p_.loaded,
                  out = t_.pixels * t_.across * t_.lines * t_.down * p_.lanes;
    return (in + out) * t_.deep * p_.bytes;
  }

  int64_t memory_share() const {
    const int64_t busy = std::min(m_.count, blocks_);
    return std::max<int64_t>(1, std::min(m_.local_rate / 2, m_.l2_rate / busy));
  }

  // The launch before has made the input and the one behind reads the results: where the cache
  // keeps both, neither passes through memory.
  int64_t memory_cycles() const {
    const int64_t out = p_.images * p_.line.out * p_.row.out * p_.channels * p_.lanes,
                  bytes = (p_.inputs + out) * p_.bytes;
    return bytes <= target_.l2_bytes ? 0 : parts_of(bytes, m_.memory_rate);
  }

  const WindowTile& t_;
  const WindowProblem& p_;
  const Target& target_;
  Multiprocessors m_;
  int64_t warps_ = 1, blocks_ = 1, steps_ = 1;
};

// Threads along an axis of so many tiles: powers of two, and as many as fill it in few blocks.
std::vector<int64_t> shares(int64_t tiles, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t n = 1; n <= std::min(tiles, most); ++n) {
    const bool power = (n & (n - 1)) == 0;
    if (power || n == tiles || tiles % n == 0) found.push_back(n);
  }
  return found;
}

}  // namespace

int64_t window_bytes(const WindowTile& tile, const WindowProblem& p) {
  if (tile.place != WindowPlace::block) return 0;
  return tile.deep * p.line.span(tile.lines * tile.down) * p.row.span(tile.pixels * tile.across) *
         p.loaded * p.bytes;
}

int64_t window_registers(const WindowTile& tile, const WindowProblem& p) {
  const int64_t words = p.bytes < 4 ? 4 : p.bytes;  // what is multiplied
  const int64_t lanes = p.loaded * words / 4, sums = tile.pixels * tile.lines * p.lanes,
                weights = p.lanes;
  const int64_t lines = tile.place == WindowPlace::registers ? p.line.span(tile.lines) : tile.lines,
                window = p.copied ? lines * p.row.span(tile.pixels) * lanes
                                  : tile.pixels * tile.lines * lanes;
  return sums + weights + window + kBesides;
}

int64_t window_weights(const WindowTile& tile, const WindowProblem& p) {
  const int64_t lines = tile.place == WindowPlace::line ? 1 : p.line.taps * p.outer_taps;
  return p.lanes * p.step * p.row.taps * lines;
}

std::string window_fault(const WindowTile& tile, const WindowProblem& p, const Target& target) {
  const auto axis = std::ranges::find(target.axes, "thread", &DeviceAxis::level);
  const int64_t threads = tile.threads();
  if (axis == target.axes.end()) return "the target has no threads";
  if (threads > target.max_group || (axis->max > 0 && threads > axis->max))
    return "the tile has more threads than a block";
  if (!p.copied && (p.row.out % tile.pixels != 0 || p.line.out % tile.lines != 0))
    return "the outputs of the threads do not fill what is read in place";
  if (!p.copied && tile.place != WindowPlace::registers)
    return "what is read in place has no window";
  if (tile.place == WindowPlace::line && p.line.taps == 1) return "there is one line of taps";
  if (tile.place != WindowPlace::block) return "";
  if (p.depth > p.step || p.outer_taps > 1)
    return "a window of the block holds one step of channels";
  if (!block_memory(target)) return "the threads of a block share no memory";
  if (window_bytes(tile, p) > std::min(target.local_bytes, kMaxStackBufferBytes))
    return "the window does not fit the block's memory";
  return "";
}

std::optional<int64_t> window_cycles(const WindowTile& tile, const WindowProblem& problem,
                                     const Target& target) {
  return WindowModel(tile, problem, target).cycles();
}

std::optional<WindowTile> window_tile(const WindowProblem& problem, const Target& target) {
  std::optional<WindowTile> best;
  std::tuple<int64_t, int64_t, int64_t> least;  // cycles, then threads, then outputs of one
  WindowTile tile;
  const int64_t most = std::min(kMostWindowThreads, target.max_group);
  const int64_t vectors = (problem.depth > 1 ? problem.step : 1) * problem.row.taps;
  for (const WindowPlace place : kWindowPlaces)
    for (const int64_t pixels : {1, 2, 4, 8})
      for (const int64_t lines : {1, 2, 3, 4, 7, 8}) {
        tile.place = place, tile.pixels = pixels, tile.lines = lines;
        const int64_t width = parts_of(problem.row.out, pixels),
                      height = parts_of(problem.line.out, lines);
        const int64_t taps_in_line = place == WindowPlace::line ? vectors
                                                                : vectors * problem.line.taps;
        if ((pixels > 1 && pixels >= 2 * problem.row.out) ||
            (lines > 1 && lines >= 2 * problem.line.out) ||
            window_registers(tile, problem) > kMostWindowRegisters ||
            window_weights(tile, problem) > kMostWindowWeights ||
            pixels * lines * taps_in_line * problem.lanes > kMostStraight ||
            (problem.copied && place == WindowPlace::registers &&
             problem.line.span(lines) * problem.row.span(pixels) > kMostLoads))
          continue;
        for (const int64_t across : shares(width, most))
          for (const int64_t down : shares(height, most / across))
            for (const int64_t deep : shares(problem.channels, most / across / down)) {
              tile.across = across, tile.down = down, tile.deep = deep;
              const std::optional<int64_t> cycles = window_cycles(tile, problem, target);
              if (!cycles) continue;
              const std::tuple cost{*cycles, -tile.threads(), -pixels * lines};
              if (best && cost >= least) continue;
              best = tile, least = cost;
            }
      }
  return best;
}

}  // namespace tw
