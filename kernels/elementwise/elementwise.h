// Groups of injective operators. Every stage is a nest of its own.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

struct ElementwiseStages {
  const char* family() const { return "elementwise"; }
};

Expected<Lowered<ElementwiseStages>> define_concat(GroupBuilder& b, const Node& node);
Expected<Lowered<ElementwiseStages>> define_elementwise(GroupBuilder& b);
void schedule_elementwise(ScheduleBuilder& s);

}  // namespace tw
