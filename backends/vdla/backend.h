// The device back end of the VDLA (docs/internals/vdla.md)
#pragma once
#include "backends/backend.h"

namespace tw {
Expected<std::unique_ptr<DeviceBackend>> make_vdla_backend(const Target& device);
}
