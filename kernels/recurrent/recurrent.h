// Steps of recurrent networks: the stages that the definition makes and the schedule uses.
#pragma once
#include <vector>

#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

struct RecurrentStages {
  const char* family() const { return "recurrent"; }
  bool arranged = false;  // weights and sums lie in panels of cells, the states in whole panels
  // Loops of a nest over cells. Arranged, `cell` numbers panels, and `lane` the cells of one.
  struct Cells {
    Loop batch, cell, lane;
  };
  // A part of each scan iteration: products of a state with weights, then the cells that use them.
  struct Phase {
    Stage sums;
    // A constant, or none as defined. Later the panels: [panel, depth, gate, cell of the panel]
    BufferName weights;
    Loop batch, cell, gate, depth;
    Cells cells;
    Loop lane;  // as in Cells
    DType weight_type = DType::f32;
  };
  std::vector<Phase> phases;
  // Sums or ends of ranges. Arranged, they have a loop over the lanes of vectors.
  struct Range {
    Stage stage;
    Loop lane;
    Loops reduce;
  };
  // Stages in front of the phases, for integers: the ends of the range of a step's states
  std::vector<Range> ends;
  Stage rounded;  // the states of a step in the form that the products want
  Loop rounded_cell;
  SumInstruction instruction;  // for the sums of the phases
  Stages copies;               // nests outside the scan
  Loops first_cells;           // loops over the cells of the first states
};

// Recurrent steps as they are defined
Lowered<RecurrentStages> define_recurrent(GroupBuilder& b, const Node& node);
// Lays weights and states out for the target's vectors or its instruction for integer weights, and
// lets sums and cells cover whole panels.
void arrange_recurrent(ScheduleBuilder& s, RecurrentStages& m);
void schedule_recurrent(ScheduleBuilder& s, const RecurrentStages& m);

}  // namespace tw
