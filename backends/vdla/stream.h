// A scheduled kernel as one stream of instructions. Its parts (roles) become the engines' queues,
// its virtual threads take turns in them; tokens of the kernel say which instruction needs which,
// and only what that takes becomes tokens of the hardware.
#pragma once
#include "backends/vdla/lower_nest.h"

namespace tw::vdla {

struct KernelStream {
  StreamParts parts;
  std::vector<Instruction> instructions;  // with finish
};

// target: the device's entry of Target::devices. Errors: the first thing that the device cannot do,
// naming stage or loop.
Expected<KernelStream> compile_stream(const Kernel& kernel, const Device& device,
                                      const Target& target);

}  // namespace tw::vdla
