// How many rows (pixels) and vectors of sums a kernel keeps in registers. Lowering packs weights by it, the search spaces tile
// by it. The rule: rows * vectors sums, one vector of weights each, one broadcast input; more always spilled in the loop.
#pragma once
#include <optional>

#include "ir/target.h"

namespace tw {

struct RegisterTile { int64_t rows, vectors; };

int64_t most_rows(const Target& target, int64_t vectors);   // that the rule allows, at least 1
// The rows that cover `extent` of them in the least time, the last tile being smaller; 1 when the extent is symbolic.
int64_t register_rows(const Target& target, std::optional<int64_t> extent, int64_t vectors);
// With a number of vectors that divides `blocks`.
RegisterTile register_tile(const Target& target, std::optional<int64_t> extent, int64_t blocks);

}  // namespace tw
