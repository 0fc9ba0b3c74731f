// Chooses the target's instruction for products of narrow integers and of short floats, and
// describes the form of operands that it needs.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/product_form.h"
#include "ir/schedule/tile_moves.h"
#include "kernels/common/handles.h"

namespace tw {

// The left operand of a product: its elements minus `zero`
struct LeftNumbers {
  DType type = DType::u8;
  int64_t zero = 0;
};

// The chosen instruction. Without one, each product multiplies widened operands.
struct IntegerProduct {
  LeftNumbers left;
  std::string intrinsic;   // empty: no instruction
  DType type = DType::u8;  // type of the left operand's copy
  // Extents of one instruction: steps of the depth, columns and rows (each with its depth)
  int64_t depth = 1, columns = 1, rows = 1;
  // Steps of the depth that are adjacent in the right operand: all of `depth`, unless operands are
  // in tiles
  int64_t neighbours = 1;
  // Set if its operands and its sums are in tile registers
  std::optional<TileMoves> tiles;

  bool defined() const { return !intrinsic.empty(); }
  Expr copied(const Expr& element) const;  // an element of the left operand's copy
  // side_by_side: the loop over the depth that one instruction covers; none: it covers one step
  SumInstruction sums(const Loop& side_by_side) const {
    return {intrinsic, rows, columns, side_by_side, {}};
  }
};

// True: an instruction whose left operand has `type` can take `left`.
bool counts_from(const LeftNumbers& left, DType type);

int64_t least_byte(DType type);
// True: one instruction of the target multiplies two pairs of words and adds the products.
bool pairs_words(const Target& target);
// The type in which products without an instruction count left numbers from their zero, before they
// are widened; nullopt: that of the sums. A byte that counts from its least number becomes an
// unsigned byte, so the back end sees that words suffice for its products. With other zero points
// it becomes a word, unless the target pairs words. These must not be negative in a pair, so the
// difference then gets all bits. Device families read the zero point from the plain form.
std::optional<DType> narrow_type(const Target& target, const LeftNumbers& left, DType sums);

// Extents that a whole number of instructions must fill
struct ProductExtents {
  int64_t columns = 1;
  int64_t depth = 0;  // 0: any number of steps, filled up with zeros
  // Lowering fills rows up to whole instructions, by an eighth at most. nullopt: a free number,
  // which tiles handle in any case, since a tile with one row costs what the instructions for one
  // row cost.
  std::optional<int64_t> rows = 1;
  // For a family that keeps sums in tile registers: all columns and steps of the depth. They and
  // the rows are filled up to whole tiles, which may at most double the products. Absent: the
  // family does not use tiles.
  struct Whole {
    int64_t columns = 1, depth = 1;
  };
  std::optional<Whole> tiles = std::nullopt;
  std::vector<std::string> without = {};  // instructions that are left out
};
IntegerProduct integer_product(const Target& target, const LeftNumbers& left, DType right,
                               const ProductExtents& extents);

// Also tries other zero points for the left operand. It takes the one that covers the most steps at
// once, and the operand's own among equals, as product.left.zero. Each sum is then too large by
// (left.zero - product.left.zero) times the sum of the right operand's numbers.
IntegerProduct integer_product_from_anywhere(const Target& target, const LeftNumbers& left,
                                             DType right, const ProductExtents& extents);

// Rows of the sums that tile registers hold at once: two tiles if that fills the rows up by an
// eighth at most or their number is free, otherwise one
int64_t rows_of_tiles(const IntegerProduct& product, std::optional<int64_t> rows);

}  // namespace tw
