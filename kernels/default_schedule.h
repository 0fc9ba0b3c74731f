// Default schedules, with one file for each kernel family. Static rules choose by the target's
// numbers, such as registers and vector width. Each decision also names its alternatives; these are
// the knobs of the template space (autotune/space.h).
#pragma once
#include "ir/schedule/constant_stages.h"
#include "kernels/lower.h"
#include "kernels/schedule/choices.h"

namespace tw {

// The schedule of a kernel for which no tuning record names a better one. It is always legal for
// the kernel. An error is a bug of the space, and names the step.
Expected<Schedule> default_schedule(const LoweredGroup& lowered, const Target& target);

// A default schedule with the kernel that it makes
struct ScheduledKernel {
  Schedule schedule;
  RunKernel run;
};
Expected<ScheduledKernel> default_kernel(const LoweredGroup& lowered, const Target& target);

// Builds the schedule by a point's choices. Error: the point is illegal.
Expected<Schedule> chosen_schedule(const LoweredGroup& lowered, const Target& target,
                                   Choices& choices);

}  // namespace tw
