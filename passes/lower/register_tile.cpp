#include "passes/lower/register_tile.h"

#include <algorithm>

namespace tw {

constexpr int64_t kSetBytes = 4096;     // rows this far apart share a set of the L1 cache
constexpr int64_t kSetWays = 8;
constexpr int64_t kRowVectors = 8;      // of a panel for one row: long streams of weights
constexpr double kPanelReads = 0.16;    // time to read a panel's row, in multiply-adds of as many vectors
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

RegisterTile product_tile(const Target& target, int64_t lanes, std::optional<int64_t> rows, std::optional<int64_t> columns, std::optional<int64_t> row_bytes) {
  bool one_row = rows == 1;
  int64_t widest = panel_vectors(target, one_row);
  if (one_row && columns && *columns >= 4 * kRowVectors * lanes) widest = kRowVectors;
  if (columns) widest = std::max<int64_t>(1, std::min(widest, (*columns + lanes - 1) / lanes));
  RegisterTile best{tile_rows(target, widest, rows, row_bytes), widest};
  if (one_row || !rows) return best;
  double least = 0;
  for (int64_t vectors = widest; vectors >= std::min<int64_t>(2, widest); --vectors) {
    RegisterTile tile{tile_rows(target, vectors, rows, row_bytes), vectors};
    auto padding = [](int64_t extent, int64_t part) { return static_cast<double>((extent + part - 1) / part * part) / static_cast<double>(extent); };
    double cost = padding(*rows, tile.rows) * (columns ? padding(*columns, vectors * lanes) : 1) * (1 + kPanelReads / static_cast<double>(tile.rows));
    if (vectors < widest && cost >= least) continue;
    best = tile;
    least = cost;
  }
  return best;
}

}  // namespace tw
