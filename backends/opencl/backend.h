// OpenCL C 1.2 for a device of a target: one program text with every kernel called there
// (runtime/device/opencl.c builds and runs it).
#pragma once
#include "backends/backend.h"

namespace tw {
Expected<std::unique_ptr<DeviceBackend>> make_opencl_backend(const Target& device);
}
