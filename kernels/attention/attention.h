// Attention as one kernel: what lowering makes of it and the schedule takes.
#pragma once
#include <cstdint>

#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// Of queries: below that, packing keys and values for an instruction that multiplies short floats
// takes longer than it saves.
inline constexpr int64_t kFewestShortRows = 48;

struct AttentionStages {
  const char* family() const { return "attention"; }
  // A right operand in panels of columns.
  struct Panels {
    Stage stage;
    Loop depth, lane;
    int64_t columns = 1;      // of a panel
    bool transposes = false;  // copied as it is, from rows that run along the depth
    // For an instruction: its numbers, steps of the depth that it takes together side by side. Its
    // loops in a panel, of which two are over a vector's columns and such steps, or one over both.
    Stage numbers;
    Loops within;
    Loop numbers_lane, together;
    int64_t steps_of_lane = 1;
  };
  struct Product {
    Stage stage;
    Loop row, column, depth;
    int64_t steps = 1;  // of the depth that an instruction takes in one of the loop's
    SumInstruction instruction;
  };
  // Over a row's keys: lanes of partial results, panel by panel, then one.
  struct Fold {
    Stage part;
    Loop part_row, part_lane, part_panels, part_steps;
    Stage total;
    Loop row, lane;
  };
  Panels keys, values;
  Stage queries;  // for an instruction
  Stage weights;  // exponentials, for one whose operands are in tile registers
  Product key_products, value_products;
  Stage scores;
  Loop scores_row, scores_column;
  Fold top, sum;
  Stage exponentials;
  Loop exponentials_column;
  Stage inverse;  // of the sums
  Loop inverse_row;
  Stage y;
  Loops batches;
  Loop row, column;
  // Of a block, where lowering knows it: with a causal mask, or by an instruction whose sums are in
  // tile registers; 0: any
  int64_t block_rows = 0;
  bool causal = false;  // a block skips panels of keys that none of it sees
};

Expected<Lowered<AttentionStages>> lower_attention(GroupBuilder& b, const Node& product);
void schedule_attention(ScheduleBuilder& s, const AttentionStages& m);

}  // namespace tw
