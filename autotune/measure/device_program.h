// The program that runs one kernel on a device: for predicting its cycles, and for libraries that
// time it.
#pragma once
#include <vector>

#include "ir/program.h"
#include "support/diag.h"

namespace tw {

// One device, and one call there. constants: by parameter of the kernel (source empty: not
// constant). copies: inputs and outputs are those of the program, copied to the device and back
// around the call; else they are places of its memory that nobody fills. Errors: extents that are
// known at run time only.
Expected<Program> device_program(const Kernel& kernel, const std::vector<Constant>& constants,
                                 bool copies);

}  // namespace tw
