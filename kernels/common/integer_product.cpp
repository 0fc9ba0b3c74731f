#include "kernels/common/integer_product.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/common/group_builder.h"

namespace tw {
namespace {

// True: filling up computes at most an eighth more than needed.
bool nearly_fill(int64_t rows, int64_t of_instruction) {
  return (rows + of_instruction - 1) / of_instruction * of_instruction * 8 <= rows * 9;
}

// True: filling up at most doubles the products of the tiles.
bool fill_tiles(const ProductForm& form, const ProductExtents& extents) {
  const auto filled = [](int64_t extent, int64_t by) {
    const int64_t whole = (extent + by - 1) / by * by;
    return static_cast<double>(extent) / static_cast<double>(whole);
  };
  return filled(extents.rows.value_or(form.row_count()), form.row_count()) *
             filled(extents.tiles->columns, form.column_count()) *
             filled(extents.tiles->depth, form.depth_count()) >=
         0.5;
}

// The distance of i8 numbers below the u8 numbers of the same order
constexpr int64_t kSign = 128;
// Zero points up to this one leave a byte's difference within 16 bits.
constexpr int64_t kFurthest = 1 << 14;

}  // namespace

// Instructions on unsigned bytes take bytes that count from their least number, those on signed
// bytes take bytes that count from the middle. Words hold the difference.
bool counts_from(const LeftNumbers& left, DType type) {
  if (is_float(type)) return left.type == type;
  if (type == DType::i16) return is_byte(left.type) || (left.type == type && left.zero == 0);
  if (!is_byte(left.type) || !is_byte(type)) return false;
  const int64_t own = left.type == DType::i8 ? 0 : kSign;  // zero for numbers around 0
  return left.zero == (type == DType::i8 ? own : own - kSign);
}

int64_t least_byte(DType type) { return type == DType::i8 ? -kSign : 0; }

bool pairs_words(const Target& target) {
  const auto of_words = [](const ProductForm& form) {
    return form.left_type == DType::i16 && form.right_type == DType::i16;
  };
  return best_product(
             target, of_words,
             [](const ProductForm& form) { return form.dense() && form.depth_count() == 2; })
      .has_value();
}

std::optional<DType> narrow_type(const Target& target, const LeftNumbers& left, DType sums) {
  if (!is_byte(left.type) || !is_int(sums) || left.type == sums || !target.driver.empty())
    return std::nullopt;
  if (left.type == DType::i8 && left.zero == least_byte(DType::i8)) return DType::u8;
  const bool word = left.zero != 0 && std::abs(left.zero) <= kFurthest && !pairs_words(target);
  return word ? std::optional(DType::i16) : std::nullopt;
}

Expr IntegerProduct::copied(const Expr& element) const {
  const Expr number = left.type == type ? element : cast(type, element);
  if (type == DType::i16) return less_zero(number, left.zero);
  // In both directions this flips the sign bit.
  return left.type == type ? number : number + int_imm(type == DType::u8 ? kSign : -kSign, type);
}

IntegerProduct integer_product(const Target& target, const LeftNumbers& left, DType right,
                               const ProductExtents& extents) {
  IntegerProduct product;
  product.left = left;
  const DType sums = is_float(right) ? DType::f32 : DType::i32;
  const auto best = best_product(
      target,
      [&](const ProductForm& form) {
        // Instructions with memories of their own need operands there, which only device families
        // provide.
        return std::ranges::find(extents.without, form.intrinsic->name) == extents.without.end() &&
               (form.intrinsic->scopes.empty() || form.in_tiles) && form.sum_type == sums &&
               form.right_type == right && counts_from(left, form.left_type);
      },
      [&](const ProductForm& form) {
        if (form.in_tiles)
          return extents.tiles && fill_tiles(form, extents) && tile_moves(target, form).has_value();
        return form.dense() && !form.sums_in_memory && extents.depth % form.depth_count() == 0 &&
               nearly_fill(extents.rows.value_or(1), form.row_count()) &&
               extents.columns % form.column_count() == 0 &&
               form.row_count() * form.column_count() * 32 <= target.vector_bits;
      });
  if (!best) return product;
  product.intrinsic = best->intrinsic->name;
  product.type = best->left_type;
  product.depth = best->depth_count();
  product.columns = best->column_count();
  product.rows = best->row_count();
  product.neighbours = best->neighbours();
  product.tiles = tile_moves(target, *best);
  return product;
}

IntegerProduct integer_product_from_anywhere(const Target& target, const LeftNumbers& left,
                                             DType right, const ProductExtents& extents) {
  IntegerProduct best = integer_product(target, left, right, extents);
  const int64_t least = least_byte(left.type);
  for (const int64_t zero : {least, least + kSign}) {
    const IntegerProduct other = integer_product(target, {left.type, zero}, right, extents);
    if (is_byte(left.type) && other.depth > best.depth) best = other;
  }
  return best;
}

int64_t rows_of_tiles(const IntegerProduct& product, std::optional<int64_t> rows) {
  return product.rows * (!rows || nearly_fill(*rows, 2 * product.rows) ? 2 : 1);
}

}  // namespace tw
