// A schedule that suits any kernel.
#pragma once
#include "ir/schedule/schedule.h"
#include "ir/target.h"

namespace tw {

// The schedule of reference computations. One rule serves all kernels, and it shares none of the
// families' choices.
// first: steps before all others, which lay parameters out
Expected<Schedule> plain_schedule(const Kernel& kernel, const Target& target,
                                  const Schedule& first = {});

}  // namespace tw
