// Kernels for devices: those with threads (tiles that a block of threads computes together, nests
// dealt out to threads), and those with tensor instructions between memories of their own.
#pragma once
#include <optional>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/reduce/reduce.h"
#include "kernels/schedule/choices.h"

namespace tw {

class ScheduleBuilder;

// The way in which blocks of threads compute a product
struct BlockTile {
  // Extents of a block's sums, and the depth of the operands that it copies at one time
  int64_t rows = 0, columns = 0, depth = 0;
  // Extents of one thread's sums, or of the sums of the threads that execute an instruction
  // together
  int64_t thread_rows = 0, lanes = 0;
  // Groups in which a thread's rows and columns lie. The groups are spread evenly over the tile's
  // height and width.
  int64_t row_groups = 1, column_groups = 1;
  int64_t together = 1;     // threads that share a part of the sums
  int64_t instruction = 0;  // index into tile_instructions, if there are any
  int64_t stages = 1;       // copies in flight at one time
  int64_t parts = 1;        // parts of the depth, each computed by a block
  int64_t threads() const { return rows / thread_rows * (columns / lanes) * together; }
  bool operator==(const BlockTile&) const = default;
};

// The stages of a product whose operands a block's threads share. Both operands are copied, padded
// to whole tiles.
struct TileStages {
  const char* family() const { return "tiles"; }
  Stage left;   // copy of the left operand [batch.., rows, depth]
  Stage right;  // copy of the right one [batch.., panel, depth, column]; none: packed earlier
  BufferName weights;  // buffer that `right` or the packing fills
  Stage acc;
  Loop acc_row, acc_column, depth;
  Stage y;  // the result, or the store of sums that other stages read
  Loops batches;
  Loop row, column;
  Stage total;     // split sums: adds the parts in order
  Stage result;    // split sums: the product's y, which reads `total`; none: other stages read it
  BlockTile tile;  // the default one, to whose multiples rows, columns and depth are filled up
};

// The schedule for a target with axes. It deals every nest out to work-groups and their threads
// (levels "block" and "thread"), with sums in the threads. reduce: the stages of a kernel that
// reduces rows; null: another kernel.
Expected<Schedule> bound_schedule(const Kernel& kernel, const ReduceStages* reduce,
                                  const Target& target, Choices* choices = nullptr);
// The schedule for products in tiles of a block whose threads share memory: its copies, sums and y
void schedule_tiles(ScheduleBuilder& s, const TileStages& m);

// The schedule for a target that multiplies tensors between memories of its own. Loads, products
// and stores become parts that run at the same time, and virtual threads share the tiles
// (kernels/device/tensor_form.h). A kernel not in that form keeps its loops.
Expected<Schedule> tensor_schedule(const Kernel& kernel, const Target& target,
                                   Choices* choices = nullptr);

}  // namespace tw
