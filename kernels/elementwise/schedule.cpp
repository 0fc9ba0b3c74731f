// Element-wise kernels: every store is scheduled on its own.
#include "kernels/elementwise/elementwise.h"
#include "kernels/schedule/builder.h"

namespace tw {

void schedule_elementwise(ScheduleBuilder& s) { s.map_nests(s.stages()); }

}  // namespace tw
