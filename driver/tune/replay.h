// A record measured again without the model that it came from.
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
  std::string kernel_hash;  // that the kernel's text must have
  int threads = 1;
  uint64_t weights_between = 0;  // MeasureJob's
};
// The kernel scheduled. Errors: a text that cannot be read, another kernel than the hash says, a
// schedule that does not apply.
Expected<Kernel> scheduled(const Replay& replay, const Target& target);
// Builds it and measures it here, in a process of its own. Its outputs are compared with those of
// the plain schedule. Errors: as scheduled(), and a target that this machine cannot measure.
Expected<MeasureResult> measure_again(const Replay& replay, const Target& target);

}  // namespace tw
