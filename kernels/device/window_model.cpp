#include "kernels/device/window_model.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "ir/kernel/stack_limits.h"
#include "kernels/device/multiprocessor_model.h"
#include "kernels/device/tiles.h"

namespace tw {
namespace {

constexpr int64_t kWavefront = 128;  // bytes that the first-level cache delivers in a cycle
// Most threads of a block, and most registers of a thread
constexpr int64_t kMostWindowThreads = 256, kMostWindowRegisters = 144;
constexpr int64_t kBesides = 40;  // registers for addresses, loops and conditions
// Most vectors that a thread loads, and most multiply-adds, in straight-line code
constexpr int64_t kMostLoads = 96, kMostStraight = 1024;
// Instructions of a load that may meet the padding, of one that may not, and of a thread's other
// work
constexpr int64_t kGuarded = 4, kPlain = 2, kBegin = 40;
constexpr int64_t kMostImages = 1 << 16;

// Positions that `outputs` neighbouring outputs read
int64_t kept(const WindowAxis& axis, int64_t outputs) {
  return std::min(axis.span(outputs), outputs * axis.taps);
}

// Weights of `lines` lines of taps
int64_t weights_of(const WindowProblem& p, int64_t lines) {
  return p.lanes * p.step * p.row.taps * lines;
}

// Registers of a thread if straight-line code has `lines` lines of taps: its sums, its loads and,
// since ptxas loads weights ahead of their use, half of the weights.
int64_t registers_with(const WindowTile& tile, const WindowProblem& p, int64_t lines) {
  const int64_t words = p.bytes < 4 ? 4 : p.bytes;  // bytes of a number as it is multiplied
  const int64_t lanes = p.loaded * words / 4, sums = tile.pixels * tile.lines * p.lanes,
                weights = std::max(p.lanes, weights_of(p, lines) / 2);
  const int64_t loaded = tile.place == WindowPlace::registers ? p.line.span(tile.lines)
                         : lines > 1                          ? kept(p.line, tile.lines)
                                                              : tile.lines;
  const int64_t window = p.copied ? loaded * p.row.span(tile.pixels) * lanes
                                  : tile.pixels * tile.lines * lanes;
  return sums + weights + window + kBesides;
}

// Vectors of the block's window that a thread copies
int64_t copies_of(const WindowTile& tile, const WindowProblem& p) {
  const int64_t lines = p.line.span(tile.lines * tile.down),
                positions = p.row.span(tile.pixels * tile.across);
  return parts_of(tile.deep * lines * positions, tile.threads());
}

// The places of a block's window in shared memory
class BankModel {
 public:
  BankModel(const WindowTile& tile, const WindowProblem& problem)
      : t_(tile),
        p_(problem),
        positions_(p_.row.span(t_.pixels * t_.across)),
        lines_(p_.line.span(t_.lines * t_.down)),
        together_(kWavefront / std::clamp(p_.loaded * p_.bytes, kWavefront / kWarp, kWavefront)),
        copies_(copies_of(t_, p_)),
        reads_(kept(p_.line, t_.lines) * kept(p_.row, t_.pixels)) {}

  // The layout if no two threads that ask together share a bank, and no place stays free
  WindowBanks ideal() const {
    WindowBanks banks;
    banks.apart = t_.pixels * p_.row.stride;
    banks.of_phase = parts_of(positions_, banks.apart);
    banks.of_line = banks.apart * banks.of_phase;
    banks.of_channel = lines_ * banks.of_line;
    banks.reads = banks.copies = parts_of(std::min(t_.threads(), kWarp), together_);
    return banks;
  }

  // The best layout, one stride after the other. Each stride is at least what the strides before it
  // need.
  WindowBanks best() const {
    WindowBanks banks = ideal();
    const auto try_strides = [&](int64_t WindowBanks::* stride, const auto& adjust) {
      WindowBanks least;
      for (int64_t free = 0; free < together_; ++free) {
        WindowBanks now = banks;
        now.*stride += free;
        adjust(now);
        count(now);
        if (free == 0 || cost(now) < cost(least)) least = now;
      }
      banks = least;
    };
    const auto channel = [&](WindowBanks& b) { b.of_channel = lines_ * b.of_line; };
    try_strides(&WindowBanks::of_phase, [&](WindowBanks& b) {
      b.of_line = b.apart * b.of_phase;
      channel(b);
    });
    try_strides(&WindowBanks::of_line, channel);
    try_strides(&WindowBanks::of_channel, [](WindowBanks&) {});
    return banks;
  }

 private:
  int64_t cost(const WindowBanks& b) const { return b.reads * reads_ + b.copies * copies_; }

  void count(WindowBanks& b) const {
    b.reads = turns([&](int64_t thread) {
      const int64_t across = thread % t_.across, down = thread / t_.across % t_.down,
                    deep = thread / t_.across / t_.down;
      return deep * b.of_channel + down * t_.lines * p_.line.stride * b.of_line + across;
    });
    b.copies = turns([&](int64_t thread) {
      const int64_t at = thread % positions_, line = thread / positions_ % lines_,
                    channel = thread / positions_ / lines_;
      return channel * b.of_channel + line * b.of_line + at % b.apart * b.of_phase + at / b.apart;
    });
  }

  // Turns of the first warp: for each group of threads that ask together, the requests to the
  // fullest bank
  template <class Place>
  int64_t turns(const Place& place) const {
    int64_t all = 0;
    const int64_t threads = std::min(t_.threads(), kWarp);
    for (int64_t begin = 0; begin < threads; begin += together_) {
      std::array<int64_t, kWarp> asked{};
      for (int64_t t = begin; t < std::min(threads, begin + together_); ++t)
        ++asked[static_cast<size_t>(place(t) % together_)];
      all += *std::ranges::max_element(asked);
    }
    return all;
  }

  const WindowTile& t_;
  const WindowProblem& p_;
  int64_t positions_, lines_;
  int64_t together_;        // threads that ask together, and vectors that all banks give
  int64_t copies_, reads_;  // counts of a thread, as weights
};

int64_t bytes_of(const WindowBanks& banks, const WindowTile& tile, const WindowProblem& p) {
  return tile.deep * banks.of_channel * p.loaded * p.bytes;
}

std::string fault_besides_memory(const WindowTile& tile, const WindowProblem& p,
                                 const Target& target) {
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
  return "";
}

int64_t room_of(const Target& target) { return std::min(target.local_bytes, kMaxStackBufferBytes); }

class WindowModel {
 public:
  WindowModel(const WindowTile& tile, const WindowProblem& problem, const Target& target,
              WindowBanks banks)
      : t_(tile), p_(problem), target_(target), banks_(banks), m_(multiprocessors(target)) {
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
  bool shares() const { return t_.place == WindowPlace::block; }

  int64_t resident() const {
    if (!fault_besides_memory(t_, p_, target_).empty()) return 0;
    const int64_t registers = whole_parts(window_registers(t_, p_), kRegistersTogether),
                  bytes = shares() ? bytes_of(banks_, t_, p_) : 0;
    if (bytes > room_of(target_)) return 0;
    return std::min({m_.blocks, m_.threads / t_.threads(),
                     m_.registers / (registers * t_.threads()),
                     bytes == 0 ? m_.blocks : m_.local_bytes / bytes});
  }

  // Cycles of `together` blocks on a multiprocessor: the busiest unit's, and those that a block
  // waits
  int64_t cycles_of(int64_t together) const {
    const int64_t warps = together * warps_;
    // Warps do not move between partitions, so the partition with the most warps is busy longest.
    const int64_t products = parts_of(warps, kPartitions) * warp_products() * kPartitions * kWarp,
                  busy = std::max({parts_of(products, m_.f32),
                                   parts_of(warps, kPartitions) * warp_instructions(),
                                   together * first_level(),
                                   parts_of(together * block_bytes(), memory_share())});
    const int64_t waits = t_.place == WindowPlace::line ? p_.line.taps * p_.outer_taps : 1;
    return busy + (steps_ * waits + 1) * m_.latency + (shares() ? 2 * kBarrier : 0);
  }

  // Multiply-adds of a thread
  int64_t warp_products() const { return t_.pixels * t_.lines * p_.lanes * p_.depth * taps(); }
  int64_t taps() const { return p_.line.taps * p_.row.taps * p_.outer_taps; }

  // Vectors of the input that a thread loads for all of its sums
  int64_t window_loads() const {
    if (!p_.copied || shares())  // a thread keeps a vector that several taps read
      return steps_ * p_.outer_taps * kept(p_.line, t_.lines) * kept(p_.row, t_.pixels);
    if (t_.place == WindowPlace::line)
      return steps_ * p_.outer_taps * p_.line.taps * t_.lines * p_.row.span(t_.pixels);
    return steps_ * p_.outer_taps * p_.line.span(t_.lines) * p_.row.span(t_.pixels);
  }
  int64_t weight_loads() const { return p_.depth * taps(); }
  int64_t stores() const { return t_.pixels * t_.lines; }

  int64_t warp_instructions() const {
    const int64_t loads = window_loads(), guarded = shares() ? kPlain : kGuarded;
    // Shorter floats are widened.
    const int64_t widened = p_.bytes < 4 ? loads * p_.loaded + weight_loads() * p_.lanes : 0;
    return kBegin + warp_products() + loads * guarded + weight_loads() + widened +
           stores() * (kPlain + p_.lanes) + copies() * kGuarded * 2;
  }

  // Vectors that a thread copies for its block
  int64_t copies() const { return shares() ? copies_of(t_, p_) : 0; }
  int64_t vector() const { return p_.loaded * p_.bytes; }

  // Turns of the first-level cache, or of the memory that a block shares, for one block. Neighbours
  // of a row are `distance` vectors apart, and the vectors between them are fetched too.
  int64_t first_level() const {
    const int64_t read = shares() ? banks_.reads : turns(t_.pixels * p_.row.stride);
    return warps_ * (window_loads() * read + weight_loads() + stores() * turns(t_.pixels) +
                     copies() * (turns(1) + banks_.copies));
  }
  int64_t turns(int64_t distance) const {
    const int64_t along = std::min(t_.across, kWarp), rows = parts_of(kWarp, along);
    return std::min(kWarp, rows * parts_of(along * distance * vector(), kWavefront));
  }

  // Bytes that a block reads from and writes to the second-level cache
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

  // The previous launch made the input, and the next one reads the results. If the cache keeps
  // both, neither passes through memory.
  int64_t memory_cycles() const {
    const int64_t out = p_.images * p_.line.out * p_.row.out * p_.channels * p_.lanes,
                  bytes = (p_.inputs + out) * p_.bytes;
    return bytes <= target_.l2_bytes ? 0 : parts_of(bytes, m_.memory_rate);
  }

  const WindowTile& t_;
  const WindowProblem& p_;
  const Target& target_;
  WindowBanks banks_;
  Multiprocessors m_;
  int64_t warps_ = 1, blocks_ = 1, steps_ = 1;
};

// Counts of threads along an axis of `tiles` tiles: powers of two, and divisors, which fill it
// exactly
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
  return tile.place == WindowPlace::block ? bytes_of(window_banks(tile, p), tile, p) : 0;
}

WindowBanks window_banks(const WindowTile& tile, const WindowProblem& problem) {
  return BankModel(tile, problem).best();
}

int64_t straight_lines(const WindowTile& tile, const WindowProblem& p) {
  const int64_t all = p.line.taps * p.outer_taps;
  if (tile.place == WindowPlace::line) return 1;
  if (tile.place == WindowPlace::registers) return all;
  return registers_with(tile, p, all) <= kMostWindowRegisters ? all : 1;
}

int64_t window_registers(const WindowTile& tile, const WindowProblem& p) {
  return registers_with(tile, p, straight_lines(tile, p));
}

int64_t window_weights(const WindowTile& tile, const WindowProblem& p) {
  return weights_of(p, straight_lines(tile, p));
}

std::string window_fault(const WindowTile& tile, const WindowProblem& p, const Target& target) {
  const std::string fault = fault_besides_memory(tile, p, target);
  if (fault.empty() && window_bytes(tile, p) > room_of(target))
    return "the window does not fit the block's memory";
  return fault;
}

std::optional<int64_t> window_cycles(const WindowTile& tile, const WindowProblem& problem,
                                     const Target& target, int64_t most) {
  const BankModel banks(tile, problem);
  const auto by = [&](const WindowBanks& places) {
    return WindowModel(tile, problem, target, places).cycles();
  };
  const std::optional<int64_t> least = by(banks.ideal());
  return tile.place == WindowPlace::block && least && *least <= most ? by(banks.best()) : least;
}

std::optional<WindowTile> window_tile(const WindowProblem& problem, const Target& target) {
  std::optional<WindowTile> best;
  // cycles, then negated threads, then negated outputs of a thread
  std::tuple<int64_t, int64_t, int64_t> least;
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
              const std::optional<int64_t> cycles = window_cycles(
                  tile, problem, target,
                  best ? std::get<0>(least) : std::numeric_limits<int64_t>::max());
              if (!cycles) continue;
              const std::tuple cost{*cycles, -tile.threads(), -pixels * lines};
              if (best && cost >= least) continue;
              best = tile, least = cost;
            }
      }
  return best;
}

}  // namespace tw
