// Matrix products and convolutions (as products with gathered windows) in tiles that a block of a
// device's threads makes together: operands pass through memory that the threads share. Rows,
// columns and depth are padded to whole tiles, so that only the copies of the operands (zeros
// beyond them) and y ask where the tensors end.
#pragma once
#include "kernels/common/group_builder.h"
#include "kernels/device/device.h"

namespace tw {

struct BlockTile {
  // Of a block, and of its copies of the operands at one time
  int64_t rows = 0, columns = 0, depth = 0;
  // Of one thread's sums; with an instruction: of those of the threads that do it together
  int64_t thread_rows = 0, lanes = 0;
  const Intrinsic* instruction = nullptr;  // adds a product of matrices of the operands' type
  int64_t m = 1, n = 1, k = 1;             // its rows, columns, depth
  int64_t together = 1;                    // threads that do it
  int64_t threads() const { return rows / thread_rows * (columns / lanes) * together; }
};

// The tile for such a product, by the target's memory of a block, its threads and instructions;
// nullopt: the target has no such memory, or the product is too small to share much. Unknown rows
// count as many.
std::optional<BlockTile> block_tile(const Target& target, DType operands,
                                    std::optional<int64_t> rows, int64_t columns, int64_t depth);
// What the threads of a block share; null: nothing
const MemoryScope* block_memory(const Target& target);

struct TiledProduct {
  BlockTile tile;
  // Each with its own right operand; their loops are tb0, tb1, ...
  Shape batch;
  Expr rows;
  int64_t columns = 0, depth = 0;
  DType acc_type = DType::f32;
  // Asked for inside of the matrix only
  std::function<Expr(const Index& batch, const Expr& row, const Expr& k)> left;
  DType left_type = DType::f32;
  ValueId right;
  // Logical, behind the right operand's batches
  std::function<Index(const Expr& k, const Expr& column)> right_index;
};

// Adds the copies of the operands and the sums, all but y of the stages.
struct TiledSums {
  TileStages stages;
  BufferId acc;  // [batch.., rows, columns], both padded
};
TiledSums add_tiled_sums(GroupBuilder& b, const TiledProduct& product);

// nullopt: not in tiles.
std::optional<Lowered<TileStages>> lower_matmul_in_tiles(GroupBuilder& b, const Node& node);
Expected<std::optional<Lowered<TileStages>>> lower_conv_in_tiles(GroupBuilder& b, const Node& node);

}  // namespace tw
