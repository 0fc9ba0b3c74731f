// A schedule for any kernel.
#pragma once
#include "ir/schedule/schedule.h"
#include "ir/target.h"

namespace tw {

// The schedule of reference computations: one rule for all kernels that shares none of the
// families' choices.
Expected<Schedule> plain_schedule(const Kernel& kernel, const Target& target);

}  // namespace tw
