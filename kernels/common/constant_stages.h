// Stages that run while the model is compiled: those that fill temps of scope constant.
#pragma once
#include "kernels/common/lowered.h"

namespace tw {

// Takes such stages out of the kernel. Their temps become constant parameters, which stand where
// the constants stood from which they are made, and their stages become the pack kernels of these
// arguments. A stage that reads no constant, as all its values are zero, stays. The kernel obeys
// the rules of scopes (sched::check_scopes).
void take_out_constant_stages(GroupKernel& group);

}  // namespace tw
