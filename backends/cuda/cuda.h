// Scheduled kernels as code for NVIDIA's GPUs, or for the tests' emulator of one (form.h), a
// function a launch.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/target.h"
#include "support/diag.h"

namespace tw::cuda {

struct CudaForm {
  // PTX text for "sm_90a" at "ptx80"; empty: an object file for the emulator
  std::string chip, level;
};

struct CudaCode {
  std::string bytes;
  std::vector<std::vector<DeviceLaunch>> launches;  // by kernel
};

// One module of all kernels; null ones are left out. Functions are called k0, k1, ..., or k0_0,
// k0_1, ... where a kernel has several launches; their parameters are the kernel's, the workspace,
// the symbols. Errors: what does not map, with the kernel's name.
Expected<CudaCode> cuda_code(std::span<const Kernel* const> kernels, const Target& device,
                             const CudaForm& form);

}  // namespace tw::cuda
