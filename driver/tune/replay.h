// Measures a record again without the model that it came from.
#pragma once
#include <cstdint>
#include <string>

#include "autotune/measure.h"
#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

// A schedule of a kernel, by their texts.
struct Replay {
  std::string kernel, schedule;
  std::string kernel_hash;  // hash that the kernel's text must have
  int threads = 1;
  uint64_t weights_between = 0;  // MeasureJob::weights_between
};
// The scheduled kernel. Errors: a text that cannot be read, another kernel than the hash says, a
// schedule that does not apply.
Expected<Kernel> scheduled(const Replay& replay, const Target& target);
// Builds the kernel and measures it here, in a new process. Compares its outputs with those of the
// plain schedule. Errors: as in scheduled(), and a target that this machine cannot measure.
Expected<MeasureResult> measure_again(const Replay& replay, const Target& target);

}  // namespace tw
