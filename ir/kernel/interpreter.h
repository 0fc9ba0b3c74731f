// Runs a kernel (scheduled or not) point by point with bounds checks: the oracle for schedules and
// code generation. Float arithmetic is done in double and rounded to the destination's type at
// stores; f32 results may differ from compiled code in the last bits.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

// One dense array per parameter buffer (inputs, constants, outputs), in buffer order, sized for the
// symbols' values.
struct KernelArgument {
  std::vector<std::byte> bytes;
  // Of an output that is declared in place of that argument: made in its bytes, without own ones
  std::optional<size_t> place{};
};
// Outputs are written where they lie. Errors: a load or store outside its buffer (naming stage and
// indices), a read of a value that was never written (temps and outputs start as "unwritten") or of
// an input that the output in its place has overwritten, a wrong argument size.
// target: blocks by its instructions add products of bf16 as these do (PairRule); null: in order.
Error interpret(const Kernel& kernel, std::span<KernelArgument> arguments,
                const std::map<std::string, int64_t>& symbols = {}, const Target* target = nullptr);

}  // namespace tw
