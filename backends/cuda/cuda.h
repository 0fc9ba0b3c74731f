// Compiles scheduled kernels for NVIDIA's GPUs, or for the tests' emulator of one (form.h), with a
// function for each launch.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/target.h"
#include "support/diag.h"

namespace tw::cuda {

struct CudaForm {
  // A chip "sm_90a" and a level "ptx80" give PTX text; empty: an object file for the emulator
  std::string chip, level;
};

struct CudaCode {
  std::string bytes;
  std::vector<std::vector<DeviceLaunch>> launches;  // by kernel
};

// Compiles one module of all kernels; null ones are left out. The functions are k0, k1, ..., or
// k0_0, k0_1, ... for a kernel with several launches. Their parameters are the kernel's, the
// workspace, and the symbols. Errors contain the kernel's name: a construct that cannot be mapped.
Expected<CudaCode> cuda_code(std::span<const Kernel* const> kernels, const Target& device,
                             const CudaForm& form);

}  // namespace tw::cuda
