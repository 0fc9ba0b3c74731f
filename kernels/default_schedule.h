// Default schedules, one file a kernel family: by static rules from the target's numbers
// (registers, vector width). At each decision they say what else could be done: those are the knobs
// of the template space (autotune/space.h).
#pragma once
#include "ir/schedule/schedule.h"
#include "kernels/lower.h"
#include "kernels/schedule/choices.h"

namespace tw {

// The schedule that a kernel gets when no tuning record names a better one. Always legal for the
// kernel; an error is a bug of the space, reported with the step.
Expected<Schedule> default_schedule(const Kernel& kernel, const KernelStages& stages,
                                    const Target& target);

// The same by a point's choices. Error: an illegal point.
Expected<Schedule> chosen_schedule(const Kernel& kernel, const KernelStages& stages,
                                   const Target& target, Choices& choices);

}  // namespace tw
