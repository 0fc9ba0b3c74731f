// Whether a call may make an output in the memory of an input of the same shape, shown on the loops
// as they are scheduled.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// True: no element of `in` is read once the same element of `out` is stored, whatever the order of
// the iterations of any loop. Index expressions decide, conditions are not looked at; false where
// they do not show it.
bool may_be_in_place(const Kernel& kernel, BufferId out, BufferId in);
// Every input for which that is true; those first that are read by what stores the output: their
// elements are in the cache then.
std::vector<BufferId> in_place_inputs(const Kernel& kernel, BufferId out);

}  // namespace tw
