// Products of integers of few bits, and of short floats, by an instruction of the target: which
// one, and what it wants of the operands.
#pragma once
#include <string>

#include "ir/graph/graph.h"
#include "ir/schedule/product_form.h"
#include "ir/schedule/tile_moves.h"
#include "kernels/common/handles.h"

namespace tw {

// The left operand's elements of a product, less `zero`.
struct LeftNumbers {
  DType type = DType::u8;
  int64_t zero = 0;
};

// Without an instruction each product is one of widened operands.
struct IntegerProduct {
  LeftNumbers left;
  std::string intrinsic;   // empty: none
  DType type = DType::u8;  // of the left operand's copy
  // Of one instruction: steps of the depth, columns and rows (each with its depth)
  int64_t depth = 1, columns = 1, rows = 1;
  // Of the depth, the steps that lie side by side in the right operand: all, but in tiles
  int64_t neighbours = 1;
  // Where its operands and its sums are in tile registers
  std::optional<TileMoves> tiles;

  bool defined() const { return !intrinsic.empty(); }
  Expr copied(const Expr& element) const;  // of the left operand
  // neighbours: the loop over the depth that one takes; none where that is one step
  SumInstruction sums(const Loop& side_by_side) const {
    return {intrinsic, rows, columns, side_by_side, {}};
  }
};

// Whether an instruction whose left numbers are of `type` can take these.
bool counts_from(const LeftNumbers& left, DType type);

// The least number of a byte's type.
int64_t least_byte(DType type);
// Whether the target multiplies two pairs of words and adds them in one instruction.
bool pairs_words(const Target& target);
// The element less the zero point, in the type of the sums, where no instruction takes it. Of a
// byte that counts from the least one it is a byte without a sign: so the back end sees that words
// do for its products. From elsewhere it is a word that is widened, unless the target pairs words:
// none of a pair may have a sign then, so the difference may as well have all bits. The families of
// devices read the zero point from the plain form.
Expr widened_number(const Target& target, const Expr& element, DType sums, int64_t zero);

// What a whole number of instructions must fill.
struct ProductExtents {
  int64_t columns = 1;
  int64_t depth = 0;  // 0: any number of steps, filled up with zeros
  // Lowering fills them up: an eighth more at the most. nullopt: a free number, of which tiles take
  // any: a tile with one row costs what the instructions of one row cost
  std::optional<int64_t> rows = 1;
  // Of a family that keeps sums in tile registers: all columns and steps of the depth. They, and
  // rows, are filled up to whole tiles, which half of all products at most may be. Absent: it does
  // not keep them there.
  struct Whole {
    int64_t columns = 1, depth = 1;
  };
  std::optional<Whole> tiles = std::nullopt;
};
IntegerProduct integer_product(const Target& target, const LeftNumbers& left, DType right,
                               const ProductExtents& extents);

// The same with whatever zero point takes the most steps at once, the operand's own of equals:
// product.left.zero. What that makes too much of each sum is (left.zero - product.left.zero) times
// the sum of the right operand's numbers.
IntegerProduct integer_product_from_anywhere(const Target& target, const LeftNumbers& left,
                                             DType right, const ProductExtents& extents);

// Of so many rows, those that tiles of sums hold at once: two tiles, where that fills an eighth up
// at the most, and of a free number.
int64_t rows_of_tiles(const IntegerProduct& product, std::optional<int64_t> rows);

class GroupBuilder;
struct Group;

// Whether nodes of the group round both operands of its product to tf32.
bool multiplies_tf32(const GroupBuilder& b);

// The node with the short floats that its group's casts in front of it widen as operands: sums of
// f32(a) * f32(b) are those of an instruction for a and b. Where it multiplies tf32, with the
// operands that are rounded.
Node with_short_operands(const GroupBuilder& b, const Node& node);
// The same of the group's anchor, with short floats alone, before the group is lowered.
Node with_short_operands(const Graph& graph, const Group& group);

// What numbers that are too large by `surplus` make of the sums: that times the sum of constant
// weights, made at compile time. `shape`: of the result; `at`: its element's place in the weights,
// of variables c0, c1, ... by dimension of the result, summed over the axes that are left out or
// undefined. where: which weights a sum has, of these variables and r0, r1, ... by axis of the
// weights; undefined: all.
BufferId surplus_of_sums(GroupBuilder& b, ValueId weights, DType type, int64_t surplus,
                         std::vector<Expr> at, const Shape& shape, const Expr& where = {});

}  // namespace tw
