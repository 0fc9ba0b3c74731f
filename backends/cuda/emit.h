// One scheduled kernel as functions of an LLVM module, one a launch (backends/device/launch.h).
#pragma once
#include <vector>

#include "backends/cuda/form.h"

namespace tw {

// Functions are called `name`, or `name`_0, `name`_1, ... when there are several; their parameters are the kernel's, the workspace, the symbols.
// Errors: what does not map, with the kernel's name.
Expected<std::vector<DeviceLaunch>> emit_gpu(llvm::Module& module, const Kernel& kernel, const Target& device, const GpuForm& form, const std::string& name);

// The module to assembly (PTX) or an object file.
Expected<std::string> finish_gpu(llvm::Module& module, const GpuForm& form, bool assembly);

}  // namespace tw
