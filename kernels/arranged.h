// The first part of a schedule: from a kernel as defined to one whose operands lie in the order in
// which the target reads them.
#pragma once
#include "ir/schedule/constant_stages.h"
#include "kernels/lower.h"
#include "kernels/schedule/choices.h"

namespace tw {

struct ArrangedKernel {
  Schedule steps;  // from the lowered kernel
  RunKernel run;
  KernelStages stages;
};

// Lays the parameters out in the blocks of their tensors, and arranges the operands of products and
// convolutions for the target. choices: null: the usual ones. Error: a choice is illegal.
Expected<ArrangedKernel> arranged(const LoweredGroup& lowered, const Target& target,
                                  Choices* choices = nullptr);

// The steps that lay parameters out in the blocks of their tensors, alone
Expected<Schedule> laid_out(const LoweredGroup& lowered, const Target& target);

// Requires that the schedule lays each parameter out in the blocks of its tensor.
Error check_layouts(const LoweredGroup& lowered, const Schedule& schedule);

// Applies a schedule of any source to a lowered kernel. Errors: an illegal step; a parameter in
// another layout than its tensor
Expected<RunKernel> scheduled_run(const LoweredGroup& lowered, const Schedule& schedule,
                                  const Target& target);

// The whole schedule: behind the steps so far come those that schedule the arranged kernel. The
// choices keep the kernel that it makes.
Schedule continued(const ArrangedKernel& begun, const Schedule& rest, Choices* choices = nullptr);

// The group with the arranged kernel as its lowered one
Expected<LoweredGroup> arranged_group(const LoweredGroup& lowered, const Target& target);

}  // namespace tw
