// Finds the tensor instructions of a target, and the tile of the sums that suits its memories.
#include <algorithm>

#include "ir/schedule/intrinsic.h"
#include "kernels/device/tensor_form.h"
#include "kernels/schedule/choices.h"

namespace tw {
namespace {

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Extents of equal tiles; the last tile may be smaller.
std::vector<int64_t> tile_extents(int64_t extent) {
  std::vector<int64_t> out;
  for (int64_t tiles = 1; tiles <= extent; ++tiles)
    if (const int64_t rows = ceil_of(extent, tiles);
        (out.empty() || out.back() != rows) && ceil_of(extent, rows) == tiles)
      out.push_back(rows);
  return out;
}

class TileSearch {
 public:
  TileSearch(const TensorProblem& problem, const TensorInstruction& instruction,
             const Target& target)
      : p_(problem), lanes_(instruction.lanes) {
    const auto bytes = [&](const std::string& scope) {
      const MemoryScope* found = target.find_scope(scope);
      return found ? found->bytes : 0;
    };
    left_ = bytes(instruction.left) / lanes_;
    right_ = p_.weights ? bytes(instruction.right) / (lanes_ * lanes_) : 0;
    sums_ = bytes(instruction.sums) / (4 * lanes_);
    const auto parameter = [&](const char* name, int64_t usual) {
      return static_cast<double>(target.parameter(name).value_or(usual));
    };
    bytes_per_cycle_ = parameter("bytes_per_cycle", 8), latency_ = parameter("latency", 40);
    stored_per_cycle_ = parameter("requant_lanes", lanes_);
  }

  // Tries all tiles with these virtual threads and slots.
  void run(int64_t threads, int64_t slots, bool input_stays) {
    TensorTile tile;
    tile.threads = threads, tile.slots = slots, tile.input_stays = input_stays;
    for (const int64_t blocks : divisors(p_.blocks, p_.blocks))
      for (const int64_t depth : divisors(p_.depth, p_.depth)) {
        // If steps over the input channels are repeated for each tile, no input can stay.
        if (input_stays && (depth != p_.depth || blocks == p_.blocks || !p_.weights)) continue;
        tile.blocks = blocks, tile.depth = depth, tile.rows.clear();
        add_axis(tile);
      }
  }

  // The tile with its derived members; nullopt: it does not fit.
  std::optional<TensorTile> completed(TensorTile tile) const {
    if (tile.rows.size() != p_.out.size() || p_.blocks % tile.blocks != 0 ||
        p_.depth % tile.depth != 0)
      return std::nullopt;
    for (size_t d = 0; d < p_.out.size(); ++d)
      if (ceil_of(p_.out[d], tile.rows[d]) * tile.rows[d] > most_rows(p_.out[d]))
        return std::nullopt;
    for (int axis = static_cast<int>(p_.out.size()); axis >= 0 && tile.split < 0; --axis)
      if (tiles_along(tile, axis) % tile.threads == 0) tile.split = axis;
    if (tile.threads > 1 && tile.split < 0) return std::nullopt;
    const Sizes s = sizes(tile);
    const auto filled = [&](int64_t times) {
      return tile.threads * std::min(tile.slots, std::max<int64_t>(1, times / tile.threads));
    };
    const int64_t sums = filled(s.tiles * s.channels);
    const bool fits = s.left * filled(s.left_loads) <= left_ &&
                      s.right * filled(s.right_loads) <= right_ &&
                      s.sums * (sums < 3 ? sums : (sums + 1) / 2 * 2) <= sums_;
    return fits ? std::optional(tile) : std::nullopt;
  }

  std::optional<TensorTile> best;

 private:
  // Elements of a tile's operands and sums, the number of tiles, and the loads of each operand
  struct Sizes {
    int64_t left = 0, right = 0, sums = 0, taps = 1, tiles = 1, channels = 1, steps = 1;
    int64_t left_loads = 1, right_loads = 1;
  };

  int64_t tiles_along(const TensorTile& tile, int axis) const {
    if (axis == 0) return p_.blocks / tile.blocks;
    const auto d = static_cast<size_t>(axis) - 1;
    return ceil_of(p_.out[d], tile.rows[d]);
  }

  Sizes sizes(const TensorTile& tile) const {
    Sizes s;
    int64_t points = 1, window = 1;
    for (size_t d = 0; d < p_.out.size(); ++d) {
      points *= tile.rows[d];
      window *= (tile.rows[d] - 1) * p_.strides[d] + (p_.kernel[d] - 1) * p_.dilations[d] + 1;
      s.taps *= p_.kernel[d];
      s.tiles *= ceil_of(p_.out[d], tile.rows[d]);
    }
    s.channels = p_.blocks / tile.blocks, s.steps = p_.depth / tile.depth;
    s.left = window * (p_.weights ? tile.depth : tile.blocks);
    s.right = p_.weights ? tile.blocks * tile.depth * s.taps : 0;
    s.sums = tile.blocks * points;
    s.left_loads = s.tiles * (tile.input_stays ? 1 : s.channels * s.steps);
    // The weights of all input channels at once serve all tiles of an image that a thread has.
    const int64_t again = tile.threads > 1 && tile.split != 0 ? tile.threads : 1;
    s.right_loads = tile.input_stays || s.steps > 1 ? s.tiles * s.channels * s.steps
                                                    : s.channels * again;
    return s;
  }

  void add_axis(TensorTile& tile) {
    if (tile.rows.size() == p_.out.size()) return judge(tile);
    for (const int64_t rows : tile_extents(p_.out[tile.rows.size()])) {
      tile.rows.push_back(rows);
      add_axis(tile);
      tile.rows.pop_back();
    }
  }

  void judge(const TensorTile& one) {
    const std::optional<TensorTile> tile = completed(one);
    if (!tile) return;
    const double seconds = time(*tile);
    if (best && seconds >= time_) return;
    time_ = seconds;
    best = tile;
  }

  // Time in cycles. Each engine works through all tiles. The port serves two of them and delivers
  // the instructions. With one slot and two threads, one tile's sums hide the other's copies. With
  // more slots all engines run side by side, and only the first loads and the last stores remain.
  double time(const TensorTile& tile) const {
    const Sizes s = sizes(tile);
    const auto count = [](int64_t n) { return static_cast<double>(n); };
    const double lanes = count(lanes_), all = count(s.tiles * s.channels),
                 beat = lanes / bytes_per_cycle_;
    // Elements that are apart are requested one by one, kAsked at a time.
    const double left = count(s.left) * (p_.skips ? std::max(beat, (latency_ + 3) / kAsked) : beat),
                 right = count(s.right) * lanes * beat,
                 result = count(s.sums) * lanes / stored_per_cycle_ +
                          count(tile.blocks) * (latency_ + kStoreStart);
    const double load = count(s.left_loads) * (left + kLoadStart) +
                        count(s.right_loads) * (right + kLoadStart),
                 store = all * result,
                 instructions = count(s.left_loads + s.right_loads) +
                                all * count(tile.blocks + s.steps),
                 port = count(s.left_loads * s.left) * beat + count(s.right_loads) * right +
                        all * count(s.sums) * beat +
                        instructions * kInstructionBytes / bytes_per_cycle_,
                 work = all * (count(s.sums * p_.depth * s.taps) + kProductStart * count(s.steps));
    const double first = left + (p_.weights ? right : 0) + 2 * latency_;
    const double sum = work + store + load + all * 2 * latency_,
                 busiest = std::max({work, store, load, port});
    if (tile.threads == 1 && tile.slots == 1) return sum;
    const double hidden = tile.slots > 1 ? busiest : std::max(busiest, sum / count(tile.threads));
    return hidden + (sum - busiest) * kUneven / count(tile.slots) + first + result;
  }

  // Cycles before an instruction's first step, and the scattered elements in flight at one time
  static constexpr double kProductStart = 8, kLoadStart = 4, kStoreStart = 10, kAsked = 16;
  static constexpr double kInstructionBytes = 32;
  // The share of the other engines' work that one slot does not hide, because it does not come
  // evenly
  static constexpr double kUneven = 0.3;
  const TensorProblem& p_;
  // left_, right_, sums_: elements of the memories
  int64_t lanes_, left_ = 0, right_ = 0, sums_ = 0;
  double bytes_per_cycle_ = 8, latency_ = 0, stored_per_cycle_ = 16, time_ = 0;
};

}  // namespace

int64_t most_rows(int64_t rows) {
  constexpr int64_t kWaste = 4;  // one part in this many may lie beyond the last row
  return rows == 1 ? 1 : rows + std::max<int64_t>(1, rows / kWaste);
}

std::optional<TensorInstruction> tensor_instruction(const Target& target, bool weights) {
  for (const Intrinsic& intrinsic : target.intrinsics) {
    if (intrinsic.scopes.empty()) continue;
    Expected<std::shared_ptr<const Kernel>> semantics = semantics_of(intrinsic);
    if (!semantics) {
      llvm::consumeError(semantics.takeError());
      continue;
    }
    const std::shared_ptr<const Kernel>& kernel = *semantics;
    const size_t operands = weights ? 3 : 2;
    if (kernel->buffers.size() != operands || kernel->buffers[0].dtype != DType::i8) continue;
    const std::vector<StoreRef> stores = stores_of(kernel->body);
    if (stores.size() != 1 || stores[0]->combiner != (weights ? Combiner::add : Combiner::max))
      continue;
    const std::optional<int64_t> lanes = as_const(kernel->buffers[0].shape[0]);
    const Shape& sums = kernel->buffers.back().shape;
    if (kernel->buffers[0].shape.size() != 1 || !lanes || sums.size() != 1 ||
        !is_const(sums[0], *lanes))
      continue;
    return TensorInstruction{&intrinsic, *lanes, intrinsic.scopes[0],
                             weights ? intrinsic.scopes[1] : "", intrinsic.scopes.back()};
  }
  return std::nullopt;
}

std::optional<TensorTile> tensor_tile(const TensorProblem& problem,
                                      const TensorInstruction& instruction, const Target& target) {
  constexpr int64_t kUsualSlots = 2;  // sums alternate between the banks of their memory
  TileSearch search(problem, instruction, target);
  for (const bool input_stays : {false, true}) {
    if (target.virtual_threads > 1) {
      search.run(target.virtual_threads, 1, input_stays);
      search.run(1, kUsualSlots, input_stays);
    }
    search.run(1, 1, input_stays);
  }
  return search.best;
}

bool complete_tile(TensorTile& tile, const TensorProblem& problem,
                   const TensorInstruction& instruction, const Target& target) {
  const std::optional<TensorTile> found = TileSearch(problem, instruction, target).completed(tile);
  if (found) tile = *found;
  return found.has_value();
}

}  // namespace tw
