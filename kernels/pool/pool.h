// Pooling: the stages that lowering makes and the schedule uses.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

struct PoolStages {
  const char* family() const { return "pool"; }
  Stage acc;        // combines the window
  Loops acc_loops;  // by dimension of the output
  Stage y;
  Loops y_loops;
};

// Cuts the sums into the blocks of the output.
void arrange_pool(ScheduleBuilder& s, PoolStages& m);
Expected<Lowered<PoolStages>> define_pool(GroupBuilder& b, const Node& node);
void schedule_pool(ScheduleBuilder& s, const PoolStages& m);

}  // namespace tw
