// Matrix products and convolutions (as products with gathered windows) in tiles that a block of a
// device's threads makes together: operands pass through memory that the threads share. Rows,
// columns and depth are padded to whole tiles, so that only the copies of the operands (zeros
// beyond them) and y ask where the tensors end.
#pragma once
#include "kernels/common/group_builder.h"
#include "kernels/device/device.h"
#include "kernels/device/placement.h"
#include "kernels/schedule/builder.h"

namespace tw {

// A product of matrices that threads of a block do together.
struct TileInstruction {
  const Intrinsic* intrinsic = nullptr;
  std::shared_ptr<const Kernel> semantics;
  std::string row, column, depth;  // its loops
  int64_t m = 1, n = 1, k = 1;     // their extents
  int64_t together = 1;            // threads that do it
  // Of left operand [row, depth], right operand [column, depth], sums [row, column]
  OperandPlacement left, right, sums;
};
// What is multiplied; tf32: numbers of f32 that are rounded to it.
struct TileOperands {
  DType type = DType::f32;
  bool tf32 = false;
};
// Whether what a store adds is a product of such numbers.
bool sums_tf32(const Expr& sum);
// Those of the target that multiply such operands and add to sums of their accumulator's type.
std::vector<TileInstruction> tile_instructions(const Target& target, const TileOperands& operands);

struct BlockTile {
  // Of a block, and of its copies of the operands at one time
  int64_t rows = 0, columns = 0, depth = 0;
  // Of one thread's sums; with an instruction: of those of the threads that do it together
  int64_t thread_rows = 0, lanes = 0;
  // A thread's rows and columns lie in so many groups, the tile's whole height and width apart
  int64_t row_groups = 1, column_groups = 1;
  int64_t together = 1;  // threads that share a part of the sums
  int64_t threads() const { return rows / thread_rows * (columns / lanes) * together; }
};

// The same for a product or a convolution of one group; nullopt: other nodes, free columns or depth
// too. tf32: nodes in front of it round its operands.
std::optional<BlockTile> block_tile_of(const Graph& graph, const Node& node, const Target& target,
                                       bool tf32);

// In how many parts, each a block's, the depth is cut where the tiles alone keep few blocks busy.
// Unknown rows count as many. batches: products with operands of their own.
int64_t depth_parts(const BlockTile& tile, std::optional<int64_t> batches,
                    std::optional<int64_t> rows, int64_t columns, int64_t depth);

// The usual tile for such a product, which lowering pads to, by the target's memory of a block, its
// threads and instructions; nullopt: the target has no such memory, or the product is too small to
// share much. Unknown rows count as many.
std::optional<BlockTile> block_tile(const Target& target, const TileOperands& operands,
                                    std::optional<int64_t> rows, int64_t columns, int64_t depth);

// What a tile may be cut from: the product's sizes, and those that lowering padded it to. Unknown
// rows are a multiple of the usual tile's.
struct TileRoom {
  std::optional<int64_t> rows, padded_rows;
  int64_t columns = 1, padded_columns = 1, panel = 1, depth = 1;
  TileOperands operands;
};
// The usual tile, or a point's: knobs "tile_*", "thread_*", "*_groups". One that the target cannot
// run fails the schedule.
BlockTile choose_tile(ScheduleBuilder& s, const BlockTile& usual, const TileRoom& room,
                      const TileInstruction* instruction);
// What the threads of a block share; null: nothing
const MemoryScope* block_memory(const Target& target);

struct TiledProduct {
  BlockTile tile;
  int64_t parts = 1;  // of the depth
  // Each with its own right operand; their loops are tb0, tb1, ...
  Shape batch;
  Expr rows;
  int64_t columns = 0, depth = 0;
  DType acc_type = DType::f32;
  bool tf32 = false;  // operands are rounded to it
  // Asked for inside of the matrix only
  std::function<Expr(const Index& batch, const Expr& row, const Expr& k)> left;
  DType left_type = DType::f32;
  ValueId right;
  // Logical, behind the right operand's batches
  std::function<Index(const Expr& k, const Expr& column)> right_index;
};

// Adds the copies of the operands and the sums, all but the product's y.
struct TiledSums {
  TileStages stages;
  BufferId sums;  // [batch.., rows, columns], both padded; of several parts [part, batch.., ..]
  int64_t parts = 1;
  DType type = DType::f32;
  // Of [batch.., row, column]
  Expr element(const Index& at) const;
};
TiledSums add_tiled_sums(GroupBuilder& b, const TiledProduct& product);

// nullopt: not in tiles.
std::optional<Lowered<TileStages>> lower_matmul_in_tiles(GroupBuilder& b, const Node& node);
Expected<std::optional<Lowered<TileStages>>> lower_conv_in_tiles(GroupBuilder& b, const Node& node);

}  // namespace tw
