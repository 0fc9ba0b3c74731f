// Candidates for a device beside the processor: a scheduled kernel becomes a library like a
// model's. It copies the inputs to the device, runs the kernel once and copies the outputs back.
// The measuring process runs it through the runtime and counts the kernel's call alone.
#pragma once
#include <memory>
#include <vector>

#include "autotune/measure/reference.h"
#include "backends/backend.h"

namespace tw {

// target has the device as its only one. constants: the task's, by parameter. `compile` links, too:
// only one thread at a time may call it.
Expected<CandidateBuilder> device_candidate_builder(
    const Target& target, const std::shared_ptr<const DeviceBackend>& device,
    std::vector<Constant> constants);

}  // namespace tw
