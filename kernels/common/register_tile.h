// Which tiles of accumulators stay in registers: one rule for matrix products, convolutions and
// recurrent steps. Lowering asks it for the width of packed panels, the search spaces for the rows
// over them.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/target.h"

namespace tw {

struct RegisterTile {
  int64_t rows = 1;     // MR
  int64_t vectors = 1;  // NV, of the target's lanes
};

// Rows a multiple of so many bytes apart lie in one set of the first-level cache, which holds so
// many lines.
inline constexpr int64_t kSetBytes = 4096, kSetWays = 8;

// Of attention's queries where their number is free: they are computed in blocks of so many
inline constexpr int64_t kFreeRows = 8;

bool fuses_products(const Target& target);  // one instruction multiplies and adds

// A multiply-add takes an element of a vector as it takes a vector. So one load brings what some
// steps of the depth multiply by, where they stand in one straight line.
bool takes_elements(const Target& target);
inline constexpr int64_t kElementSteps = 4;
// Registers for sums and for such loads, of which each row has one: the rest is for what they are
// multiplied by, and for loading ahead.
inline constexpr int64_t kElementRegisters = 27;

// Sums go in pairs of depth steps, each lane of a vector over the even or the odd ones: one load
// doubles a pair of the left operand (movddup), where a broadcast of one element is a load and a
// shuffle beside the two operations of a product.
bool pairs_depth(const Target& target);

// Of such a tile: few loads of weights, each used for many rows
constexpr int64_t kPairedVectors = 2;
// Rows over them. Half of the registers at most are sums: several steps stand in one straight line,
// and code generation loads ahead.
int64_t paired_rows(const Target& target, std::optional<int64_t> extent);

// Rows * vectors accumulators, and of rows and vectors the fewer ones all at once, the others one
// at a time (the longer loop is the outer one). With one vector a row the broadcast is an operand
// of the multiplication where the instruction set can (AVX-512); a product that is not fused needs
// a register of its own.
bool fits_registers(const Target& target, const RegisterTile& tile);
int64_t most_tile_rows(const Target& target, int64_t vectors);  // 0: not even one row

// Time of one step of the reduction, in multiply-adds of a vector: sums below the latency of the
// multiply-adds in flight wait for each other, every row and vector is loaded once, at the core's
// rate of loads beside its multiply-adds, and the panel's vectors come from a farther cache.
double step_cost(const Target& target, int64_t rows, int64_t vectors);

// The tile of a matrix product: least time, padding in both directions counted: 8x48 for 128 rows
// on AVX-512, 4x24 on AVX2. One row: long panels. Unknown extents count as whole tiles, unknown
// rows as few.
RegisterTile product_tile(const Target& target, int64_t lanes, std::optional<int64_t> rows,
                          std::optional<int64_t> columns, std::optional<int64_t> row_bytes);

// Vectors of a packed panel where nothing else is known: 4 with 32 registers (4x64 and 6x64 on
// AVX-512, 6x16 on NEON), 2 with 16 (6x16 on AVX2); one row alone (a matrix-vector product) takes 4
// everywhere.
int64_t panel_vectors(const Target& target, bool one_row);

// Rows over a panel of `vectors`: those that pass all of `extent` in the least time. row_bytes:
// distance of the rows in memory; a multiple of 4 KiB puts all into one set of the L1 cache, so at
// most 8 of them. Unknown extent: the largest tile. A multiple of `step`, rows that an instruction
// takes together.
int64_t tile_rows(const Target& target, int64_t vectors, std::optional<int64_t> extent,
                  std::optional<int64_t> row_bytes = std::nullopt, int64_t step = 1);

}  // namespace tw
