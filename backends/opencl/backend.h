// The back end for OpenCL C 1.2. A device gets one program text with every kernel called on it
// (runtime/device/opencl.c builds and runs it).
#pragma once
#include "backends/backend.h"

namespace tw {
Expected<std::unique_ptr<DeviceBackend>> make_opencl_backend(const Target& device);
}
