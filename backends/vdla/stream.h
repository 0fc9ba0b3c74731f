// Compiles a scheduled kernel into one stream of instructions. The kernel's parts (roles) become
// the engines' queues, in which its virtual threads take turns. Tokens of the kernel tell which
// instruction needs which other. Only the tokens that these needs require become tokens of the
// hardware.
#pragma once
#include "backends/vdla/lower_nest.h"

namespace tw::vdla {

struct KernelStream {
  StreamParts parts;
  std::vector<Instruction> instructions;  // including finish
};

// `target` is the device's entry of Target::devices. Errors: the first construct that the device
// cannot run, with its stage or loop.
Expected<KernelStream> compile_stream(const Kernel& kernel, const Device& device,
                                      const Target& target);

}  // namespace tw::vdla
