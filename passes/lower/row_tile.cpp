#include "passes/lower/row_tile.h"

#include <algorithm>

namespace tw {
namespace {

constexpr int64_t kMostVectors = 4;
constexpr int64_t kMostRows = 28;

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
