// Which tensor instructions a target has, and the tile of the sums that suits its memories.
#include <algorithm>

#include "kernels/device/tensor_form.h"

namespace tw {
namespace {

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

// Extents of equal tiles, the last one perhaps less.
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
    bytes_per_cycle_ = static_cast<double>(target.parameter("bytes_per_cycle").value_or(8));
    latency_ = static_cast<double>(target.parameter("latency").value_or(40));
  }

  void run(int64_t threads) {
    TensorTile tile;
    tile.threads = threads;
    for (const int64_t blocks : divisors(p_.blocks))
      for (const int64_t depth : divisors(p_.depth)) {
        tile.blocks = blocks, tile.depth = depth, tile.rows.clear();
        add_axis(tile);
      }
  }

  std::optional<TensorTile> best;
  bool keep_all = false;
  std::vector<std::pair<double, TensorTile>> all;  // with their times, where they are kept

 private:
  void add_axis(TensorTile& tile) {
    if (tile.rows.size() == p_.out.size()) return judge(tile);
    for (const int64_t rows : tile_extents(p_.out[tile.rows.size()])) {
      tile.rows.push_back(rows);
      add_axis(tile);
      tile.rows.pop_back();
    }
  }

  void judge(TensorTile tile) {
    int64_t points = 1, window = 1, taps = 1, tiles = 1;
    for (size_t d = 0; d < p_.out.size(); ++d) {
      points *= tile.rows[d];
      window *= (tile.rows[d] - 1) * p_.strides[d] + (p_.kernel[d] - 1) * p_.dilations[d] + 1;
      taps *= p_.kernel[d];
      tiles *= ceil_of(p_.out[d], tile.rows[d]);
    }
    const int64_t left = window * (p_.weights ? tile.depth : tile.blocks),
                  right = p_.weights ? tile.blocks * tile.depth * taps : 0,
                  sums = tile.blocks * points;
    if (left * tile.threads > left_ || right * tile.threads > right_ || sums * tile.threads > sums_)
      return;
    tile.split = -1;
    for (int axis = static_cast<int>(p_.out.size()); axis >= 0 && tile.split < 0; --axis)
      if ((axis == 0 ? p_.blocks / tile.blocks
                     : ceil_of(p_.out[static_cast<size_t>(axis) - 1],
                               tile.rows[static_cast<size_t>(axis) - 1])) %
              tile.threads ==
          0)
        tile.split = axis;
    if (tile.threads > 1 && tile.split < 0) return;
    const double seconds = time(tile, static_cast<double>(tiles), left, right,
                                static_cast<double>(sums),
                                static_cast<double>(sums * p_.depth * taps));
    if (keep_all) all.emplace_back(seconds, tile);
    if (best && seconds >= time_) return;
    time_ = seconds;
    best = tile;
  }

  // Cycles. Weights stay where a tile has all of a channel's; loads hide behind sums with two
  // virtual threads.
  double time(const TensorTile& tile, double tiles, int64_t left, int64_t right, double sums,
              double products) const {
    const double steps = static_cast<double>(p_.depth / tile.depth),
                 channels = static_cast<double>(p_.blocks / tile.blocks),
                 lanes = static_cast<double>(lanes_);
    const double left_load = steps *
                             (static_cast<double>(left) * lanes / bytes_per_cycle_ + latency_),
                 right_load = steps *
                              (static_cast<double>(right) * lanes * lanes / bytes_per_cycle_ +
                               latency_);
    const double store = sums * lanes / bytes_per_cycle_ + latency_;
    const bool stays = steps == 1;
    const double shared =
        stays ? right_load * channels * static_cast<double>(tile.split == 0 ? 1 : tile.threads) : 0;
    const double traffic = left_load + (stays ? 0 : right_load) + store,
                 work = products + 8 * steps;
    const double each = tile.threads > 1 ? std::max(traffic, work) : traffic + work;
    return channels * tiles * each + shared + left_load / steps;
  }

  const TensorProblem& p_;
  int64_t lanes_, left_ = 0, right_ = 0, sums_ = 0;  // elements of the memories
  double bytes_per_cycle_ = 8, latency_ = 0, time_ = 0;
};

}  // namespace

std::optional<TensorInstruction> tensor_instruction(const Target& target, bool weights) {
  for (const Intrinsic& intrinsic : target.intrinsics) {
    Expected<Kernel> kernel = parse_kernel(intrinsic.semantics, intrinsic.name);
    if (!kernel || intrinsic.scopes.empty()) {
      llvm::consumeError(kernel.takeError());
      continue;
    }
    const size_t operands = weights ? 3 : 2;
    if (kernel->buffers.size() != operands || kernel->buffers[0].dtype != DType::i8) continue;
    const std::vector<Stmt> stores = stores_of(kernel->body);
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
  TileSearch search(problem, instruction, target);
  if (target.virtual_threads > 1) search.run(target.virtual_threads);
  search.run(1);
  return search.best;
}

std::vector<TensorTile> tensor_tiles(const TensorProblem& problem,
                                     const TensorInstruction& instruction, const Target& target,
                                     size_t most) {
  TileSearch search(problem, instruction, target);
  search.keep_all = true;
  for (int threads = std::max(1, target.virtual_threads); threads >= 1; --threads)
    search.run(threads);
  std::ranges::stable_sort(search.all, {}, [](const auto& one) { return one.first; });
  if (search.all.size() > most) search.all.resize(most);
  std::vector<TensorTile> tiles;
  for (auto& [seconds, tile] : search.all) tiles.push_back(std::move(tile));
  return tiles;
}

}  // namespace tw
