// Finds the instructions that move matrices into and out of tile registers, by their semantics.
#pragma once
#include <optional>
#include <string>

#include "ir/schedule/product_form.h"

namespace tw {

// Names of the instructions needed around a product in tile registers: they load its operands,
// clear a tile of sums and store it. In memory the rows of a tile are adjacent.
struct TileMoves {
  std::string load_left, load_right, zero, store;
};

// nullopt: the operands are not in tile registers, or the target lacks one of the four.
std::optional<TileMoves> tile_moves(const Target& target, const ProductForm& form);

}  // namespace tw
