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
  Stage total;  // of split sums: adds the parts in their order, and is y of the product
};

// For a target with axes: every nest over work-groups and their threads (levels "block" and
// "thread"), sums in the threads. reduce: of a kernel that reduces rows; null: of others.
Expected<Schedule> bound_schedule(const Kernel& kernel, const ReduceStages* reduce,
                                  const Target& target, Choices* choices = nullptr);
// The same for kernels in tiles of a block, whose threads share memory.
Expected<Schedule> tiled_schedule(const Kernel& kernel, const TileStages& m, const Target& target,
                                  Choices* choices = nullptr);

// For a target with a product of tensors between memories of its own: loads, products and stores as
// parts that run at the same time, tiles shared by virtual threads (kernels/device/tensor_form.h).
// A kernel that is not in that form keeps its loops.
Expected<Schedule> tensor_schedule(const Kernel& kernel, const Target& target,
                                   Choices* choices = nullptr);

}  // namespace tw
