// Pooling: what lowering makes of it and the schedule takes.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;
struct LoweredGroup;

struct PoolStages {
  Stage acc;        // over the window
  Loops acc_loops;  // by dimension of the output
  Stage y;
  Loops y_loops;
};

Expected<LoweredGroup> lower_pool(GroupBuilder& b, const Node& node);
void schedule_pool(ScheduleBuilder& s, const PoolStages& m);

}  // namespace tw
