// Matrix products and convolutions in tiles that a block of a device's threads computes together.
// Convolutions are products with gathered windows, one for each group and each phase of a
// transposed one. The operands pass through memory that the threads share. Rows, columns and depth
// are padded to whole tiles. So only the copies of the operands, which hold zeros in the padding,
// and y check where the tensors end.
#pragma once
#include <string>

#include "kernels/conv/conv.h"
#include "kernels/device/device.h"
#include "kernels/device/placement.h"
#include "kernels/matmul/matmul.h"
#include "kernels/schedule/builder.h"

namespace tw {

// A product of matrices that threads of a block execute together
struct TileInstruction {
  const Intrinsic* intrinsic = nullptr;
  std::shared_ptr<const Kernel> semantics;
  std::string row, column, depth;  // loops of the semantics
  int64_t m = 1, n = 1, k = 1;     // extents of these loops
  int64_t together = 1;            // threads that execute it
  // Places of the left operand [row, depth], the right operand [column, depth], and the sums [row,
  // column]
  OperandPlacement left, right, sums;
};
// The type of the operands; tf32: f32 numbers that are rounded to tf32
struct TileOperands {
  DType type = DType::f32;
  bool tf32 = false;
};
// True: a store adds products of numbers that are rounded to tf32.
bool sums_tf32(const Expr& sum);
// The target's instructions that multiply such operands and add to sums of their accumulator's type
std::vector<TileInstruction> tile_instructions(const Target& target, const TileOperands& operands);

// The sizes of a matrix product, or of several with operands of their own
struct TileProblem {
  // nullopt: unknown. Batches then count as one and rows as kFreeRows, and the depth is not cut.
  std::optional<int64_t> batches, rows;
  int64_t columns = 1, depth = 1;
  TileOperands operands;
  // Bytes in memory, of all batches; 0: as many as are multiplied. Windows overlap and have fewer.
  int64_t left_bytes = 0, right_bytes = 0;
  bool gathered = false;  // the left operand's elements are gathered one by one, from windows
  // The previous launch makes the left operand, with its rows adjacent instead of its depth, and
  // the next launch reads the sums.
  bool between = false;

  static constexpr int64_t kFreeRows = 256;
};

// The problem of a product or a convolution, whose groups are batches. nullopt: another node, or
// free columns or depth. tf32: nodes in front of it round its operands.
std::optional<TileProblem> tile_problem_of(const Graph& graph, const Node& node, bool tf32);

// The default tile, to which arranging pads: the one with the fewest cycles by
// kernels/device/tile_model.h. nullopt: a block's threads share no memory, no tile fits it, or the
// product is too small to share much.
std::optional<BlockTile> block_tile(const Target& target, const TileProblem& problem);

// The extents that a tile divides: the product's sizes, and those to which they were padded.
// Unknown rows are a multiple of the default tile's rows.
struct TileRoom {
  std::optional<int64_t> rows, padded_rows;
  int64_t columns = 1, padded_columns = 1, panel = 1, depth = 1;
  TileOperands operands;
};
// The reason why the target can never run a tile; "": it can. instruction null: single threads
// multiply.
std::string tile_fault(const BlockTile& tile, const Target& target, DType type,
                       const TileInstruction* instruction);
// The default tile, or that of a point: knobs "tile_*", "thread_*", "warp_*", "*_groups". A tile
// that the target cannot run fails the schedule.
BlockTile choose_tile(ScheduleBuilder& s, const BlockTile& usual, const TileRoom& room,
                      const TileInstruction* instruction);
// The memory that a block's threads share; null: there is none.
const MemoryScope* block_memory(const Target& target);
// True: each vector of the loop's iterations loads consecutive elements, and either all or none of
// them exist.
bool side_by_side(const ScheduleBuilder& s, const Stage& stage, const Loop& loop, int64_t lanes);
// True: the device can copy into shared memory while the threads go on.
bool copies_alone(const Target& target);

// The loops of a product of matrices
struct ProductLoops {
  Stage acc;
  Loops batches;  // products with operands of their own
  Loop row, column, depth;
  bool known = false;          // the right operand is constant
  bool made_together = false;  // the batches share elements, and are computed together
  bool stored = false;         // the sums go to memory for other stages
};
// Lays the operands out for the tile, and lets the sums cover whole tiles. The stages lack y,
// unless sums are stored.
TileStages arrange_product(ScheduleBuilder& s, const ProductLoops& product, const BlockTile& tile);
// Lets a thread that reads split sums add their parts.
void add_parts(ScheduleBuilder& s, const TileStages& m, const Loop& thread);

// The usual tile of a product or a convolution, as defined. nullopt: it is not computed in tiles.
std::optional<BlockTile> tile_of(const ScheduleBuilder& s, const MatMulStages& m);
std::optional<BlockTile> tile_of(const ScheduleBuilder& s, const ConvStages& m);
// Arranges the definition so. The blocks of its tensors are laid out before.
TileStages arrange_in_tiles(ScheduleBuilder& s, const MatMulStages& m, const BlockTile& tile);
TileStages arrange_in_tiles(ScheduleBuilder& s, const ConvStages& m, const BlockTile& tile);

}  // namespace tw
