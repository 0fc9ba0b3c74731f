// Reuse of memory within a call: an output takes the memory of an input that dies there.
#pragma once
#include "ir/program.h"
#include "program/plan_memory.h"

namespace tw {

// Joins an output with an input if the output's lifetime begins in the call where the input's ends,
// both have as many bytes, no other argument of the call lies in their memory, and the kernel
// allows it. The output's operands then name the input's lifetime, which goes on; the output's
// lifetime is left with no bytes. Buffer::in_place of the kernel names the input. `kernels` are the
// program's kernels. Arena operands have the number of a lifetime as index, and the bytes from its
// begin as offset.
void join_in_place(Program& program, std::vector<Kernel>& kernels,
                   std::vector<Lifetime>& lifetimes);

}  // namespace tw
