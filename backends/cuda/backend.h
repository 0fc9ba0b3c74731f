// PTX for NVIDIA's GPUs, and what ptxas makes of it where there is one (runtime/device/cuda.c loads
// and runs it).
#pragma once
#include "backends/backend.h"

namespace tw {
// Features: the chip ("sm_80", "sm_90a"), the PTX level ("ptx80"), "ptxas": an error where there is
// none, and for tests "emulated": the processor's code in the cubin's place.
Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Target& device);
}  // namespace tw
