// Groups of injective operators: every stage is a nest of its own.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;
struct LoweredGroup;

struct ElementwiseStages {};

Expected<LoweredGroup> lower_concat(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_elementwise(GroupBuilder& b);
void schedule_elementwise(ScheduleBuilder& s);

}  // namespace tw
