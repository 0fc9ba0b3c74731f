// From a defined kernel to one arranged for a target: its operands in the order in which the target
// reads them.
#pragma once
#include "kernels/common/constant_stages.h"
#include "kernels/schedule/builder.h"

namespace tw {

template <class FamilyStages>
Expected<Lowered<FamilyStages>> arranged(Lowered<FamilyStages> defined, const Target& target,
                                         void (*arrange)(ScheduleBuilder&, FamilyStages&)) {
  ScheduleBuilder s(defined.kernel, target);
  arrange(s, defined.stages);
  if (Expected<Schedule> steps = s.finish(); !steps) return steps.takeError();
  defined.kernel = s.kernel();
  take_out_constant_stages(defined);
  return defined;
}

}  // namespace tw
