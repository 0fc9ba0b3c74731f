#include "passes/lower/row_tile.h"

#include <algorithm>

namespace tw {
namespace {

constexpr int64_t kMostVectors = 4;
constexpr int64_t kMostRows = 28;

// Time of one step of the reduction, in multiply-adds of a vector: sums below the latency of the multiply-adds in flight
// wait for each other, and every row and vector is loaded once, at nearly the rate of the multiply-adds.
double step_cost(const Target& target, int64_t rows, int64_t vectors) {
  constexpr double kLoad = 1.1, kLoop = 0.5;
  const double in_flight = target.vector_bits >= 512 ? 8 : 10;
  // Wide vectors broadcast within the multiply-add; a single vector has nothing else to share the load with.
  const double loads = target.vector_bits >= 512 && vectors == 1 ? static_cast<double>(rows) + 1 : kLoad * static_cast<double>(rows + vectors);
  return std::max({static_cast<double>(rows * vectors), loads, in_flight}) + kLoop;
}

double cover_cost(const Target& target, int64_t extent, int64_t rows, int64_t vectors) {
  const double whole = static_cast<double>(extent / rows) * step_cost(target, rows, vectors);
  const int64_t rest = extent % rows;
  return (rest ? whole + step_cost(target, rest, vectors) : whole) / static_cast<double>(vectors);
}

}  // namespace

int64_t row_tile_pixels(const Target& target, std::optional<int64_t> extent, int64_t vectors, int64_t most_sums) {
  if (!extent) return 1;
  int64_t best = 1;
  for (int64_t rows = 2; rows <= std::min({most_tile_rows(target, vectors), kMostRows, most_sums / vectors, *extent}); ++rows)
    if (cover_cost(target, *extent, rows, vectors) <= cover_cost(target, *extent, best, vectors)) best = rows;
  return best;
}

RegisterTile row_tile(const Target& target, std::optional<int64_t> extent, int64_t blocks) {
  if (!extent) return {1, blocks % 2 == 0 ? 2 : 1};
  RegisterTile best{row_tile_pixels(target, extent, 1), 1};
  for (int64_t vectors = 2; vectors <= std::min(kMostVectors, blocks); ++vectors) {
    if (blocks % vectors != 0) continue;
    const RegisterTile tile{row_tile_pixels(target, extent, vectors), vectors};
    if (cover_cost(target, *extent, tile.rows, vectors) < cover_cost(target, *extent, best.rows, best.vectors)) best = tile;
  }
  return best;
}

}  // namespace tw
