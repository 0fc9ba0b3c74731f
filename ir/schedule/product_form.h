// Which product an instruction of the target adds, read from its semantics.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

// The scope of a processor's tile registers: a buffer there has whole registers, by number, and
// instructions alone reach it, which get the number of an operand's register.
inline constexpr const char* kTileScope = "tile";

// A loop of the instruction, and how far apart in each operand its iterations lie, in elements.
struct ProductAxis {
  int64_t extent = 1;
  int64_t left = 0, right = 0, sum = 0;
};

// sum[i, j] += left[i, k] * right[k, j]. Columns are what lies innermost in the sums; the left
// operand does not have them.
struct ProductForm {
  const Intrinsic* intrinsic = nullptr;
  DType left_type = DType::f32, right_type = DType::f32, sum_type = DType::f32;
  std::vector<ProductAxis> rows, columns, depth;  // from the outside in
  int64_t row_count() const { return count(rows); }
  int64_t column_count() const { return count(columns); }
  int64_t depth_count() const { return count(depth); }
  double products_a_cycle() const {
    return static_cast<double>(row_count() * column_count() * depth_count()) * intrinsic->rate;
  }
  // One loop each at most, of the depth two; operands lie as [row][depth], [column][depth] and
  // [row][column], with two loops of the depth the right one as [depth][column][neighbours].
  bool dense() const;
  // Steps of the depth that lie side by side in the right operand
  int64_t neighbours() const { return depth.empty() ? 1 : depth.back().extent; }
  // All operands are in tile registers.
  bool in_tiles = false;
  // The sums come from memory and go there in the instruction itself.
  bool sums_in_memory = false;

 private:
  static int64_t count(const std::vector<ProductAxis>& axes);
};

using ProductTest = std::function<bool(const ProductForm&)>;

// None: the instruction is no such product, is done by several threads, or its types do not fit.
std::optional<ProductForm> product_form(
    const Intrinsic& intrinsic,
    const ProductTest& types_fit = [](const ProductForm&) { return true; });

// Of those whose types fit, and that fit, the one with the most products a cycle, the first of
// equals.
std::optional<ProductForm> best_product(const Target& target, const ProductTest& types_fit,
                                        const ProductTest& fits);

}  // namespace tw
