// Makes the program that runs one kernel on a device. It serves to predict the kernel's cycles, and
// to build libraries that time it.
#pragma once
#include <vector>

#include "ir/program.h"
#include "support/diag.h"

namespace tw {

// The program has one device and one call on it. `constants` has one for each parameter of the
// kernel (source empty: not constant). With `copies`, inputs and outputs are those of the program,
// copied to the device and back around the call. Otherwise they are places of the device's memory
// that nobody fills. Errors: extents that are known at run time only.
Expected<Program> device_program(const Kernel& kernel, const std::vector<Constant>& constants,
                                 bool copies);

}  // namespace tw
