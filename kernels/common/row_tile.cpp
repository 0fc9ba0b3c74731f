#include "kernels/common/row_tile.h"

#include <algorithm>

namespace tw {
namespace {

constexpr int64_t kMostVectors = 4;
constexpr int64_t kMostRows = 28;
constexpr int64_t kMostSums = 64;
// Pixels of a tile in a row of free extent. It is small, so the last tile wastes little.
constexpr int64_t kFreeRow = 8;
constexpr int64_t kFreePlane = 14;  // limit if all pixels form one row
// Cost of reading a vector of weights from the second-level cache in such a tile, in multiply-adds
constexpr double kWeightRead = 0.5;
// Time for which a tile waits for a vector of weights from memory, in multiply-adds
constexpr double kTileReads = 0.5;
// Tiles that cover blocks which do not exist must save this much: their weights are larger.
constexpr double kPaddedGain = 0.97;

double cover_cost(const Target& target, int64_t extent, int64_t rows, int64_t vectors) {
  const double whole = static_cast<double>(extent / rows) * step_cost(target, rows, vectors);
  const int64_t rest = extent % rows;
  return (rest ? whole + step_cost(target, rest, vectors) : whole) / static_cast<double>(vectors);
}

}  // namespace

int64_t row_tile_pixels(const Target& target, std::optional<int64_t> extent, int64_t vectors,
                        int64_t most_sums, int64_t step) {
  if (!extent) return 1;
  int64_t best = step;
  for (int64_t rows = 2 * step;
       rows <= std::min({most_tile_rows(target, vectors), kMostRows, most_sums / vectors, *extent});
       rows += step)
    if (cover_cost(target, *extent, rows, vectors) <= cover_cost(target, *extent, best, vectors))
      best = rows;
  return best;
}

int64_t free_row_pixels(const Target& target, int64_t vectors, bool lines) {
  return std::min(lines ? kFreeRow : kFreePlane, most_tile_rows(target, vectors));
}

RegisterTile free_row_tile(const Target& target, int64_t blocks, bool lines) {
  const auto cost = [&](const RegisterTile& tile) {
    return (step_cost(target, tile.rows, tile.vectors) +
            kWeightRead * static_cast<double>(tile.vectors)) /
           static_cast<double>(tile.rows * tile.vectors);
  };
  RegisterTile best{free_row_pixels(target, 1, lines), 1};
  for (int64_t vectors = 2; vectors <= std::min(kMostVectors, blocks); ++vectors) {
    const RegisterTile tile{free_row_pixels(target, vectors, lines), vectors};
    if (blocks % vectors == 0 && tile.rows > 0 && cost(tile) < cost(best)) best = tile;
  }
  return best;
}

RegisterTile filled_row_tile(const Target& target, int64_t extent, int64_t blocks, int64_t step) {
  const auto cost = [&](const RegisterTile& tile) {
    return static_cast<double>((extent + tile.rows - 1) / tile.rows) *
           step_cost(target, tile.rows, tile.vectors) / static_cast<double>(tile.vectors);
  };
  RegisterTile best{tile_rows(target, 1, extent, {}, step), 1};
  for (int64_t vectors = 2; vectors <= std::min(kMostVectors, blocks); ++vectors) {
    if (blocks % vectors != 0 || step > most_tile_rows(target, vectors)) continue;
    const RegisterTile tile{tile_rows(target, vectors, extent, {}, step), vectors};
    if (cost(tile) < cost(best)) best = tile;
  }
  return best;
}

int64_t tile_lines(const Target& target, std::optional<int64_t> lines,
                   std::optional<int64_t> extent, int64_t vectors) {
  if (!extent || !lines || row_tile_pixels(target, extent, vectors) < *extent) return 1;
  const int64_t most = std::min(most_tile_rows(target, vectors), kMostRows) / *extent;
  for (int64_t n = std::min(most, *lines); n > 1; --n)
    if (*lines % n == 0) return n;
  return 1;
}

RegisterTile row_tile(const Target& target, std::optional<int64_t> extent, int64_t blocks,
                      std::optional<int64_t> lines, int64_t step, Cover cover) {
  if (!extent) return {1, blocks % 2 == 0 ? 2 : 1};
  // Time of a line and of the weights that each of its tiles reads
  const auto cost = [&](const RegisterTile& tile) {
    const int64_t together = tile_lines(target, lines, extent, tile.vectors);
    if (together == 1)
      return cover_cost(target, *extent, tile.rows, tile.vectors) +
             (lines == 1 ? 0
                         : kTileReads * static_cast<double>((*extent + tile.rows - 1) / tile.rows));
    return (cover_cost(target, together * *extent, together * *extent, tile.vectors) + kTileReads) /
           static_cast<double>(together);
  };
  const auto pixels = [&](int64_t vectors) {
    return row_tile_pixels(target, extent, vectors, kMostSums, step);
  };
  RegisterTile best{pixels(1), 1};
  double least = cost(best);
  const auto improve = [&](bool exact) {
    for (int64_t vectors = 2; vectors <= std::min(kMostVectors, blocks); ++vectors) {
      if ((blocks % vectors == 0) != exact || step > most_tile_rows(target, vectors)) continue;
      const RegisterTile tile{pixels(vectors), vectors};
      const int64_t covered = (blocks + vectors - 1) / vectors * vectors;
      const double own = cost(tile) * static_cast<double>(covered) / static_cast<double>(blocks);
      if (own >= (exact ? least : kPaddedGain * least)) continue;
      best = tile, least = own;
    }
  };
  improve(true);
  if (best.vectors == 1 && cover == Cover::padded) improve(false);
  return best;
}

}  // namespace tw
