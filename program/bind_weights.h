// The weights that scheduled kernels read, made from the constants of the model.
#pragma once
#include "ir/schedule/constant_stages.h"
#include "program/lower_program.h"

namespace tw {

// Gives the calls of scheduled kernels the operands that these read. Constants become pieces in the
// forms in which kernels read them; those that none reads are dropped. `scheduled` has the kernels
// of `lowered` in their order.
std::vector<Kernel> bind_weights(LoweredProgram& lowered, std::vector<RunKernel> scheduled);

}  // namespace tw
