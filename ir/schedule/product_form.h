// The matrix product that an instruction of the target adds, read from its semantics.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

// The scope of a processor's tile registers. A buffer there consists of whole numbered registers.
// Only instructions access it, and they get the number of an operand's register.
inline constexpr const char* kTileScope = "tile";

// A loop of the instruction, with the stride of its iterations in each operand, in elements
struct ProductAxis {
  int64_t extent = 1;
  int64_t left = 0, right = 0, sum = 0;
};

// sum[i, j] += left[i, k] * right[k, j]. Columns are innermost in the sums, and the left operand
// lacks them.
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
  // True: rows and columns have at most one loop each and the depth at most two. The operands lie
  // as [row][depth], [column][depth] and [row][column]. With two depth loops the right one lies as
  // [depth][column][neighbours].
  bool dense() const;
  // Steps of the depth that are adjacent in the right operand
  int64_t neighbours() const { return depth.empty() ? 1 : depth.back().extent; }
  // True: all operands are in tile registers.
  bool in_tiles = false;
  // True: the instruction itself loads the sums from memory and stores them there.
  bool sums_in_memory = false;

 private:
  static int64_t count(const std::vector<ProductAxis>& axes);
};

using ProductTest = std::function<bool(const ProductForm&)>;

// nullopt: the instruction is no such product, several threads execute it, or its types do not fit.
std::optional<ProductForm> product_form(
    const Intrinsic& intrinsic,
    const ProductTest& types_fit = [](const ProductForm&) { return true; });

// The product with the most multiply-adds a cycle among those whose types fit and that `fits`
// accepts. Of equal ones, the first.
std::optional<ProductForm> best_product(const Target& target, const ProductTest& types_fit,
                                        const ProductTest& fits);

}  // namespace tw
