// Proves on a scheduled kernel's loops that a call may make an output in the memory of an input of
// the same shape.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// True: no element of `in` is read once the same element of `out` is stored, in any order of the
// loops' iterations. The proof uses index expressions and ignores conditions. False: there is no
// proof.
bool may_be_in_place(const Kernel& kernel, BufferId out, BufferId in);
// Every input for which may_be_in_place is true. The inputs that the output's own stores read come
// first, since their elements are then in the cache.
std::vector<BufferId> in_place_inputs(const Kernel& kernel, BufferId out);

}  // namespace tw
