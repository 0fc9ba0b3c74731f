#include "kernels/common/narrow.h"

#include "kernels/common/group_builder.h"

namespace tw {
namespace {

bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

}  // namespace

bool sums_pairs(const Target& target) {
  return target.arch() == Arch::x86_64 &&
         (target.vector_bits <= 128 || target.has(target.vector_bits >= 512 ? "avx512bw" : "avx2"));
}

bool sums_quads(const Target& target) {
  return target.arch() == Arch::x86_64 &&
         (target.vector_bits >= 512 ? target.has("avx512vnni")
                                    : target.vector_bits == 256 && target.has("avxvnni"));
}

Expr NarrowProducts::copied(const Expr& element) const {
  const Expr number = from == type() ? element : cast(type(), element);
  // -128 becomes 0
  return count == 2          ? less_zero(number, zero)
         : from == DType::i8 ? number + int_imm(128, type())
                             : number;
}

NarrowProducts narrow_products(const Target& target, DType left, int64_t zero, DType right,
                               int64_t most) {
  NarrowProducts products{left, zero, 1};
  // As behind a relu
  const bool from_least = is_byte(left) && zero == (left == DType::i8 ? -128 : 0);
  const bool small = is_byte(left) || (left == DType::i16 && zero == 0);
  if (most >= 4 && sums_quads(target) && from_least && right == DType::i8) products.count = 4;
  else if (most >= 2 && sums_pairs(target) && small && is_byte(right)) products.count = 2;
  return products;
}

Expr sum_of_neighbours(int64_t count, const std::function<Expr(int64_t neighbour)>& product) {
  Expr sum = product(0);
  for (int64_t p = 1; p < count; ++p) sum = sum + product(p);
  return sum;
}

}  // namespace tw
