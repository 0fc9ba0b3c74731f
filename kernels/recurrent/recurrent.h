// Steps of recurrent networks: what lowering makes of them and the schedule takes.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

struct RecurrentStages {
  const char* family() const { return "recurrent"; }
  struct Cells {
    Loop batch, block, lane;
  };
  // In each iteration of the scan: products of a state with packed weights, then the cells that
  // they make.
  struct Phase {
    Stage sums;
    BufferName weights;
    Loop batch, block, gate, lane, depth;
    Cells cells;
  };
  // Where states are rounded in a step, before the phases: a stage of their range by lane, and the
  // stage that rounds them, along its rows.
  struct Range {
    Stage stage;
    Loop lane;
    Loops reduce;
  };
  std::vector<Range> range;
  Stage rounded;
  Loop rounded_cell;
  SumInstruction instruction;  // of the phases' sums
  Stages copies;               // outside of the scan, nests of their own
  std::vector<Phase> phases;
};

Expected<Lowered<RecurrentStages>> lower_recurrent(GroupBuilder& b, const Node& node);
void schedule_recurrent(ScheduleBuilder& s, const RecurrentStages& m);

}  // namespace tw
