// Outputs that take the memory of an input that dies in their call.
#pragma once
#include "ir/program.h"
#include "program/plan_memory.h"

namespace tw {

// kernels: that the program's calls name. Arena operands carry their lifetime's number as index and
// bytes from its begin as offset. Where a call's output begins to live and an input of as many
// bytes, whose memory no other argument shows, ends, and the kernel allows it, the output's
// operands become the input's, whose lifetime goes on; the output's has no bytes any more. The
// kernel is told (Buffer::in_place).
void join_in_place(Program& program, std::vector<Kernel>& kernels,
                   std::vector<Lifetime>& lifetimes);

}  // namespace tw
