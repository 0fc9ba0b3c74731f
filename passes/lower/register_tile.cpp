#include "passes/lower/register_tile.h"

#include <algorithm>

namespace tw {

constexpr int64_t kSetBytes = 4096;     // rows this far apart share a set of the L1 cache
constexpr int64_t kSetWays = 8;
constexpr int64_t kInFlight = 8;        // accumulators that hide the latency of a multiply-add

bool fits_registers(const Target& target, const RegisterTile& tile) {
  bool fused = target.arch() != Arch::x86_64 || target.has("fma") || target.has("avx512f");
  int64_t usable = target.vector_registers - (target.has("avx512f") ? 1 : 0);
  int64_t used = tile.rows * tile.vectors + (tile.vectors == 1 && target.has("avx512f") ? 1 : tile.vectors + 1) + (fused ? 0 : 1);
  return used <= usable;
}

int64_t most_tile_rows(const Target& target, int64_t vectors) {
  int64_t rows = 0;
  while (rows < target.vector_registers && fits_registers(target, {rows + 1, vectors})) ++rows;
  return rows;
}

int64_t panel_vectors(const Target& target, bool one_row) { return one_row || target.vector_registers >= 32 ? 4 : 2; }

int64_t tile_rows(const Target& target, int64_t vectors, std::optional<int64_t> extent, std::optional<int64_t> row_bytes) {
  int64_t most = std::max<int64_t>(1, most_tile_rows(target, vectors));
  if (row_bytes && *row_bytes % kSetBytes == 0) most = std::min(most, kSetWays);
  if (!extent) return most;
  if (*extent <= most) return std::max<int64_t>(1, *extent);
  for (int64_t rows = most; rows >= 1 && rows * vectors >= kInFlight; --rows)
    if (*extent % rows == 0 && 2 * rows >= most) return rows;
  int64_t tiles = (*extent + most - 1) / most;
  return (*extent + tiles - 1) / tiles;
}

}  // namespace tw
