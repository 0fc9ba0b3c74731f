// Matrix products and convolutions (as products with gathered windows, one of each group) in tiles
// that a block of a device's threads makes together: operands pass through memory that the threads
// share. Rows, columns and depth are padded to whole tiles, so that only the copies of the operands
// (zeros beyond them) and y ask where the tensors end.
#pragma once
#include <string>

#include "kernels/common/group_builder.h"
#include "kernels/device/device.h"
#include "kernels/device/placement.h"
#include "kernels/matmul/matmul.h"
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

// A product of matrices, or several with operands of their own.
struct TileProblem {
  // Unknown ones: batches count as one, rows as kFreeRows, and the depth is not cut
  std::optional<int64_t> batches, rows;
  int64_t columns = 1, depth = 1;
  TileOperands operands;
  // In memory, of all batches; 0: as many as are multiplied. Windows overlap
  int64_t left_bytes = 0, right_bytes = 0;
  bool gathered = false;  // the left operand's elements are found one by one: windows
  // The launch before makes the left operand, with its rows side by side and not its depth, and the
  // one behind reads the sums
  bool between = false;

  static constexpr int64_t kFreeRows = 256;
};

// That of a product or a convolution, whose groups are batches; nullopt: other nodes, free columns
// or depth too.
// tf32: nodes in front of it round its operands.
std::optional<TileProblem> tile_problem_of(const Graph& graph, const Node& node, bool tf32);

// The usual tile, which lowering pads to: the one that takes the fewest cycles by
// kernels/device/tile_model.h. nullopt: the target has no memory that a block's threads share, no
// tile fits it, or the product is too small to share much.
std::optional<BlockTile> block_tile(const Target& target, const TileProblem& problem);

// What a tile may be cut from: the product's sizes, and those that lowering padded it to. Unknown
// rows are a multiple of the usual tile's.
struct TileRoom {
  std::optional<int64_t> rows, padded_rows;
  int64_t columns = 1, padded_columns = 1, panel = 1, depth = 1;
  TileOperands operands;
};
// Why the target cannot run a tile, whatever else is chosen; "": it can. instruction null: none.
std::string tile_fault(const BlockTile& tile, const Target& target, DType type,
                       const TileInstruction* instruction);
// The usual tile, or a point's: knobs "tile_*", "thread_*", "*_groups". One that the target cannot
// run fails the schedule.
BlockTile choose_tile(ScheduleBuilder& s, const BlockTile& usual, const TileRoom& room,
                      const TileInstruction* instruction);
// What the threads of a block share; null: nothing
const MemoryScope* block_memory(const Target& target);
// Vectors of the loop's iterations are loaded from consecutive elements, and all or none of a
// vector is there.
bool side_by_side(const ScheduleBuilder& s, const Stage& stage, const Loop& loop, int64_t lanes);
// Whether the device copies into it while the threads go on.
bool copies_alone(const Target& target);

struct TiledProduct {
  BlockTile tile;
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
  // Or what every batch of the product has for its own, made of the right operand's elements
  std::function<Expr(const std::function<Expr(const Index&)>& read, const Index& batch,
                     const Expr& k, const Expr& column)>
      right_made = {};
  bool made_together = false;  // for all batches, which share elements
  bool stored = false;         // the sums go to memory, where stages behind them read them
};

// Adds the copies of the operands and the sums, all but the product's y.
struct TiledSums {
  TileStages stages;
  // [batch.., rows, columns], both padded where they are in their blocks; of several parts [part,
  // batch.., ..]
  BufferId sums;
  int64_t parts = 1;
  DType type = DType::f32;
  // Of [batch.., row, column]
  Expr element(const Index& at) const;
};
TiledSums add_tiled_sums(GroupBuilder& b, const TiledProduct& product);
// y reads them as they are or, of split sums, adds the parts.
Lowered<TileStages> finish_tiles(GroupBuilder& b, const TiledSums& sums, const ProductOutput& y);

// nullopt: not in tiles.
std::optional<Lowered<TileStages>> lower_matmul_in_tiles(GroupBuilder& b, const Node& node);
Expected<std::optional<Lowered<TileStages>>> lower_conv_in_tiles(GroupBuilder& b, const Node& node);
// A product for each phase of the output's pixels (kernels/device/transposed_tiles.cpp).
Expected<std::optional<Lowered<TileStages>>> lower_conv_transpose_in_tiles(GroupBuilder& b,
                                                                           const Node& node);

}  // namespace tw
