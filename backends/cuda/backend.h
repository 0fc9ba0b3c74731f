// The back end for NVIDIA's GPUs: PTX, and cubins where ptxas is available (runtime/device/cuda.c
// loads and runs them).
#pragma once
#include "backends/backend.h"

namespace tw {
// Features: the chip ("sm_80", "sm_90a"), the PTX level ("ptx80"), "ptxas" (an error without
// ptxas), and for tests "emulated" (code of the processor in place of the cubin).
Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Target& device);
}  // namespace tw
