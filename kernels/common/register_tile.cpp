#include "kernels/common/register_tile.h"

#include <algorithm>

namespace tw {

constexpr int64_t kRowVectors = 8;        // panel for one row: long streams of weights
constexpr int64_t kMostPanelVectors = 6;  // limit with few registers: two rows

bool fuses_products(const Target& target) {
  return target.arch() != Arch::x86_64 || target.has("fma") || target.has("avx512f");
}

bool takes_elements(const Target& target) { return target.arch() == Arch::aarch64; }

bool pairs_depth(const Target& target) {
  return target.arch() == Arch::x86_64 && target.vector_bits == 128 && target.has("sse3") &&
         !target.has("avx") && !fuses_products(target);
}

bool fits_registers(const Target& target, const RegisterTile& tile) {
  // AArch64 loads ahead and needs registers for that.
  int64_t usable = target.vector_registers - (target.arch() == Arch::aarch64 ? 2
                                              : target.has("avx512f")        ? 1
                                                                             : 0);
  bool folded = tile.vectors == 1 && target.has("avx512f");
  int64_t used = tile.rows * tile.vectors + (folded ? 1 : std::min(tile.rows, tile.vectors) + 1) +
                 (fuses_products(target) ? 0 : 1);
  return used <= usable;
}

double step_cost(const Target& target, int64_t rows, int64_t vectors) {
  constexpr double kLoad = 1.07, kLoop = 0.5, kInFlight = 8;
  constexpr double kPanelRead = 0.16;  // for each vector of the panel, from the second-level cache
  const auto products = static_cast<double>(rows * vectors);
  const double rest = kLoop + kPanelRead * static_cast<double>(vectors);
  // A product takes two operations and no broadcast from memory, so each row's broadcast is a load
  // and a shuffle beside them.
  if (!fuses_products(target))
    return std::max(products + static_cast<double>(rows), kInFlight) + rest;
  // Wide vectors broadcast within the multiply-add. A single vector shares the load with nothing
  // else.
  const double loads = target.vector_bits >= 512 && vectors == 1
                           ? static_cast<double>(rows) + 1
                           : kLoad * static_cast<double>(rows + vectors);
  const double beside_product = core_rates(target).loads / vector_products(target);
  return std::max({products, loads / beside_product, kInFlight}) + rest;
}

int64_t most_tile_rows(const Target& target, int64_t vectors) {
  int64_t rows = 0;
  while (rows < target.vector_registers && fits_registers(target, {rows + 1, vectors})) ++rows;
  return rows;
}

int64_t panel_vectors(const Target& target, bool one_row) {
  return one_row || target.vector_registers >= 32 ? 4 : 2;
}

int64_t tile_rows(const Target& target, int64_t vectors, std::optional<int64_t> extent,
                  std::optional<int64_t> row_bytes, int64_t step) {
  const auto whole = [&](int64_t rows) { return std::max<int64_t>(1, rows / step) * step; };
  int64_t most = most_tile_rows(target, vectors);
  if (row_bytes && *row_bytes % kSetBytes == 0) most = std::min(most, kSetWays);
  most = whole(most);
  if (!extent) return most;
  if (*extent <= most) return whole(*extent + step - 1);
  auto cost = [&](int64_t rows) {
    return static_cast<double>((*extent + rows - 1) / rows) * step_cost(target, rows, vectors);
  };
  int64_t best = most;
  for (int64_t rows = most - step; rows >= step; rows -= step)
    if (cost(rows) < cost(best)) best = rows;
  return best;
}

RegisterTile product_tile(const Target& target, int64_t lanes, std::optional<int64_t> rows,
                          std::optional<int64_t> columns, std::optional<int64_t> row_bytes) {
  bool one_row = rows == 1;
  int64_t widest = panel_vectors(target, one_row);
  if (!one_row && rows && target.vector_registers < 32) widest = kMostPanelVectors;
  if (one_row && columns && *columns >= 4 * kRowVectors * lanes) widest = kRowVectors;
  if (columns) widest = std::max<int64_t>(1, std::min(widest, (*columns + lanes - 1) / lanes));
  RegisterTile best{tile_rows(target, widest, rows, row_bytes), widest};
  if (one_row || !rows) return best;
  double least = 0;
  for (int64_t vectors = widest; vectors >= std::min<int64_t>(2, widest); --vectors) {
    RegisterTile tile{tile_rows(target, vectors, rows, row_bytes), vectors};
    if (!fits_registers(target, tile)) continue;
    auto parts = [](int64_t extent, int64_t part) {
      return static_cast<double>((extent + part - 1) / part);
    };
    double cost = parts(*rows, tile.rows) *
                  (columns ? parts(*columns, vectors * lanes) : 1 / static_cast<double>(vectors)) *
                  step_cost(target, tile.rows, vectors);
    if (least > 0 && cost >= least) continue;
    best = tile;
    least = cost;
  }
  return best;
}

int64_t paired_rows(const Target& target, std::optional<int64_t> extent) {
  constexpr double kInFlight = 8, kRest = 1.5;  // rest: weights of a step, and its end
  const int64_t most = target.vector_registers / 2 / kPairedVectors;
  if (!extent) return most;
  const auto cost = [&](int64_t rows) {
    return static_cast<double>((*extent + rows - 1) / rows) *
           (std::max(static_cast<double>(rows * kPairedVectors), kInFlight) + kRest);
  };
  int64_t best = std::min(most, *extent);
  for (int64_t rows = best - 1; rows >= 1; --rows)
    if (cost(rows) < cost(best)) best = rows;
  return best;
}

}  // namespace tw
