// Kernels for devices with threads of their own (tiles that a block of threads makes together,
// nests dealt out to threads) and with tensor instructions between memories of their own.
#pragma once
#include <optional>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/reduce/reduce.h"
#include "kernels/schedule/choices.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// How blocks of threads make a product.
struct BlockTile {
  // Of a block, and of its copies of the operands at one time
  int64_t rows = 0, columns = 0, depth = 0;
  // Of one thread's sums; with an instruction: of those of the threads that do it together
  int64_t thread_rows = 0, lanes = 0;
  // A thread's rows and columns lie in so many groups, the tile's whole height and width apart
  int64_t row_groups = 1, column_groups = 1;
  int64_t together = 1;     // threads that share a part of the sums
  int64_t instruction = 0;  // which of tile_instructions, where there are any
  int64_t stages = 1;       // of the copies, under way at one time
  int64_t parts = 1;        // of the depth, each a block's
  int64_t threads() const { return rows / thread_rows * (columns / lanes) * together; }
  bool operator==(const BlockTile&) const = default;
};

// A product whose operands a block's threads share: both are copied, padded to whole tiles.
struct TileStages {
  const char* family() const { return "tiles"; }
  Stage left;          // the copy of the left operand [batch.., rows, depth]
  Stage right;         // of the right one [batch.., panel, depth, column]; none: packed before
  BufferName weights;  // what it or the packing fills
  Stage acc;
  Loop acc_row, acc_column, depth;
  Stage y;        // or, of split sums, what the parts are stored by
  Loops batches;  // of y
  Loop row, column;
  Stage total;     // of split sums: adds the parts in their order, and is y of the product
  BlockTile tile;  // the usual one, which lowering pads to
};

// For a target with axes: every nest over work-groups and their threads (levels "block" and
// "thread"), sums in the threads. reduce: of a kernel that reduces rows; null: of others.
Expected<Schedule> bound_schedule(const Kernel& kernel, const ReduceStages* reduce,
                                  const Target& target, Choices* choices = nullptr);
// The same for products in tiles of a block, whose threads share memory: its copies, sums and y.
void schedule_tiles(ScheduleBuilder& s, const TileStages& m);

// For a target with a product of tensors between memories of its own: loads, products and stores as
// parts that run at the same time, tiles shared by virtual threads (kernels/device/tensor_form.h).
// A kernel that is not in that form keeps its loops.
Expected<Schedule> tensor_schedule(const Kernel& kernel, const Target& target,
                                   Choices* choices = nullptr);

}  // namespace tw
