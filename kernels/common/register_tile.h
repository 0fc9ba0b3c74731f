// The size of the tiles of accumulators that stay in registers. One rule serves matrix products,
// convolutions and recurrent steps. It chooses the width of packed panels, and the rows over them.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/target.h"

namespace tw {

struct RegisterTile {
  int64_t rows = 1;     // MR
  int64_t vectors = 1;  // NV, vectors of the target's lanes
};

// Rows whose distance in bytes is a multiple of kSetBytes lie in one set of the first-level cache.
// The set holds kSetWays lines.
inline constexpr int64_t kSetBytes = 4096, kSetWays = 8;

// Block of attention's queries for a free number of them
inline constexpr int64_t kFreeRows = 8;

bool fuses_products(const Target& target);  // true: one instruction multiplies and adds

// True: a multiply-add can take one element of a vector register as its operand. One load then
// brings the factors of several depth steps in straight-line code.
bool takes_elements(const Target& target);
inline constexpr int64_t kElementSteps = 4;
// Registers for sums and for these loads, one load for each row. The rest is for the other operand
// and for loading ahead.
inline constexpr int64_t kElementRegisters = 27;

// True: sums cover pairs of depth steps, and each lane of a vector adds the even or the odd ones.
// One load doubles a pair of the left operand (movddup). A broadcast of one element would be a load
// and a shuffle beside a product's two operations.
bool pairs_depth(const Target& target);

// Vectors of such a tile: few loads of weights, each used for many rows
constexpr int64_t kPairedVectors = 2;
// Rows of such a tile. Sums take at most half of the registers, since several steps stand in
// straight-line code and code generation loads ahead.
int64_t paired_rows(const Target& target, std::optional<int64_t> extent);

// True: the tile fits the registers. It needs rows * vectors accumulators. Of rows and vectors, the
// fewer are in registers all at once and the others one at a time (the longer loop is the outer
// one). With one vector in a row, AVX-512 makes the broadcast an operand of the multiplication. A
// product that is not fused needs another register.
bool fits_registers(const Target& target, const RegisterTile& tile);
int64_t most_tile_rows(const Target& target, int64_t vectors);  // 0: not even one row fits

// Time of one reduction step, in multiply-adds of a vector. Fewer sums than the multiply-adds in
// flight wait for each other. Every row and vector is loaded once, at the core's ratio of loads to
// multiply-adds. The panel's vectors come from a farther cache.
double step_cost(const Target& target, int64_t rows, int64_t vectors);

// The tile of a matrix product with the least time, padding in both directions counted: 8x48 for
// 128 rows on AVX-512, 4x24 on AVX2. One row gets long panels. Unknown extents count as whole
// tiles, unknown rows as few.
RegisterTile product_tile(const Target& target, int64_t lanes, std::optional<int64_t> rows,
                          std::optional<int64_t> columns, std::optional<int64_t> row_bytes);

// Vectors of a packed panel when nothing else is known: 4 with 32 registers (4x64 and 6x64 on
// AVX-512, 6x16 on NEON), 2 with 16 (6x16 on AVX2). One row alone, a matrix-vector product, takes 4
// everywhere.
int64_t panel_vectors(const Target& target, bool one_row);

// Rows over a panel of `vectors` that cover `extent` in the least time; unknown extent: the largest
// tile. row_bytes is the distance of the rows in memory. A multiple of 4 KiB puts all of them into
// one set of the L1 cache, so at most 8 are taken. The result is a multiple of `step`, the rows
// that an instruction takes together.
int64_t tile_rows(const Target& target, int64_t vectors, std::optional<int64_t> extent,
                  std::optional<int64_t> row_bytes = std::nullopt, int64_t step = 1);

}  // namespace tw
