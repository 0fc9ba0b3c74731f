// The oracle for schedules and code generation: runs a kernel, scheduled or not, point by point
// with bounds checks. Float arithmetic is in double and rounds to the buffer's type at stores. f32
// results may differ from compiled code in the last bits.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

// A dense array for one parameter buffer, sized for the symbols' values. Arguments are in buffer
// order: inputs, constants, outputs.
struct KernelArgument {
  std::vector<std::byte> bytes;
  // For an output made in place: the argument whose bytes it takes. It then has no bytes of its
  // own.
  std::optional<size_t> place{};
};
// Runs the kernel and writes the outputs into their arguments. Errors: a load or store outside its
// buffer (names stage and indices); a read of a value never written (temps and outputs start
// unwritten); a read of an input element that an output in its place has overwritten; an argument
// of the wrong size. With a target, blocks add bf16 products as the target's instructions do
// (PairRule); without one, in order.
Error interpret(const Kernel& kernel, std::span<KernelArgument> arguments,
                const std::map<std::string, int64_t>& symbols = {}, const Target* target = nullptr);

}  // namespace tw
