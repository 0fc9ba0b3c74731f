// Products of 8-bit integers: neighbours of the depth whose products one instruction sums. Fours
// are bytes without a sign by bytes with one, and so of left operands that count from their least
// number; pairs are of 16 bits, less the zero point.
#pragma once
#include <functional>

#include "ir/expr.h"
#include "ir/target.h"

namespace tw {

bool sums_pairs(const Target& target);  // pmaddwd
bool sums_quads(const Target& target);  // vpdpbusd

struct NarrowProducts {
  DType from = DType::u8;  // the left operand, and its zero point
  int64_t zero = 0;
  // Neighbours; 1: there is no such instruction, and each product is of widened operands
  int64_t count = 1;
  DType type() const { return count == 4 ? DType::u8 : DType::i16; }  // of the left operand's copy
  Expr copied(const Expr& element) const;                             // of the left operand
};
// most: neighbours that the layout lets stand side by side.
NarrowProducts narrow_products(const Target& target, DType left, int64_t zero, DType right,
                               int64_t most = 4);
// The sum of what `product` makes of each neighbour.
Expr sum_of_neighbours(int64_t count, const std::function<Expr(int64_t neighbour)>& product);

}  // namespace tw
