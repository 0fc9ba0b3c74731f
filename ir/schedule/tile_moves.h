// Instructions that bring matrices into tile registers and out of them, found by their semantics.
#pragma once
#include <optional>
#include <string>

#include "ir/schedule/product_form.h"

namespace tw {

// Around an instruction of products whose operands are in tile registers: names of those that load
// its operands, set a tile of sums to 0 and store it. Memory has the rows of a tile side by side.
struct TileMoves {
  std::string load_left, load_right, zero, store;
};

// nullopt: the operands are in no tile registers, or the target lacks one of the four.
std::optional<TileMoves> tile_moves(const Target& target, const ProductForm& form);

}  // namespace tw
