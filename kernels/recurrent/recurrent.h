// Steps of recurrent networks: the stages that lowering makes and the schedule uses.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class TargetBuilder;
class ScheduleBuilder;

struct RecurrentStages {
  const char* family() const { return "recurrent"; }
  struct Cells {
    Loop batch, block, lane;
  };
  // A part of each scan iteration: products of a state with packed weights, then the cells that use
  // them.
  struct Phase {
    Stage sums;
    BufferName weights;
    Loop batch, block, gate, lane, depth;
    Cells cells;
  };
  // Stages that round the states of a step, before the phases: those that find their range, by
  // lane, and the one that rounds them along its rows
  struct Range {
    Stage stage;
    Loop lane;
    Loops reduce;
  };
  std::vector<Range> range;
  Stage rounded;
  Loop rounded_cell;
  SumInstruction instruction;  // for the sums of the phases
  Stages copies;               // nests outside the scan
  std::vector<Phase> phases;
};

Expected<Lowered<RecurrentStages>> lower_recurrent(TargetBuilder& b, const Node& node);
void schedule_recurrent(ScheduleBuilder& s, const RecurrentStages& m);

}  // namespace tw
