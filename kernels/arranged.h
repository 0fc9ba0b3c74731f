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

// Arranges the operands of products and convolutions for the target. Other kernels stay as they
// are. choices: null: the usual ones. Error: a choice is illegal.
Expected<ArrangedKernel> arranged(const Kernel& lowered, const KernelStages& stages,
                                  const Target& target, Choices* choices = nullptr);

// The whole schedule: behind the steps so far come those that schedule the arranged kernel. The
// choices keep the kernel that it makes.
Schedule continued(const ArrangedKernel& begun, const Schedule& rest, Choices* choices = nullptr);

// The group with the arranged kernel as its lowered one
Expected<LoweredGroup> arranged_group(const LoweredGroup& lowered, const Target& target);

}  // namespace tw
