// Attention as one kernel: the stages of its definition, which are arranged and scheduled for
// processors.
#pragma once
#include <cstdint>

#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// The fewest queries for which products use an instruction for short floats. Below that, packing
// keys and values takes longer than the instruction saves.
inline constexpr int64_t kFewestShortRows = 48;

struct AttentionStages {
  const char* family() const { return "attention"; }
  bool arranged = false;  // the operands lie as the target reads them
  // A right operand, copied in panels of columns
  struct Panels {
    // none: the operand is read in place, or copied for an instruction at once; of a single key
    // the stages stay as they are defined
    Stage stage;
    Loop depth, lane;
    int64_t columns = 1;
    bool transposes = false;  // copies a matrix whose rows run along the depth
    // For an instruction: the stage of the numbers that it takes, with adjacent steps of the depth
    // that it uses together. `within` are the loops in a panel. Two of them run over a vector's
    // columns and those steps, or one runs over both.
    Stage numbers;
    Loops within;
    Loop numbers_lane, together;
    int64_t steps_of_lane = 1;
  };
  struct Product {
    Stage stage;
    Loop row, column, depth;
    DType left_type, right_type;  // the operands' elements, before they are widened
    int64_t steps = 1;            // steps of the depth that one iteration of its loop covers
    SumInstruction instruction;
  };
  // Combines the keys of a row. Arranged, it first combines them panel by panel into one partial
  // result for each lane, then these into one.
  struct Fold {
    Stage total;
    Loop row, keys;
    Stage part;
    Loop part_row, part_lane, part_panels, part_steps;
    Loop lane;
  };
  Panels keys, values;
  Stage queries;  // copied queries for an instruction
  Stage weights;  // copied exponentials, for an instruction with operands in tile registers
  Product key_products, value_products;
  Stage scores;
  Loop scores_row, scores_column;
  Fold top, sum;
  Stage exponentials;
  Loop exponentials_row, exponentials_column;
  Stage inverse;  // inverse of the row sums
  Loop inverse_row;
  Stage y;
  Loops batches;
  Loop row, column;
  // Rows of a block, if the arrangement fixes them: with a causal mask, or with an instruction
  // whose sums are in tile registers. 0: any number.
  int64_t block_rows = 0;
  bool causal = false;  // true: a row does not see the keys behind some one
};

// Attention as it is defined, for any target
Lowered<AttentionStages> define_attention(GroupBuilder& b, const Node& product);
// Lays keys and values out in panels, fills rows and keys up to whole tiles, and combines the keys
// of a row in lanes.
void arrange_attention(ScheduleBuilder& s, AttentionStages& m);
void schedule_attention(ScheduleBuilder& s, const AttentionStages& m);

}  // namespace tw
