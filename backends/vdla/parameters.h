// The requantization parameters of a kernel's channels, from its constants.
#pragma once
#include "backends/vdla/lower_nest.h"
#include "ir/program.h"

namespace tw::vdla {

// As load.prm reads them: {bias, multiplier, shift} a channel. constants: by parameter of the
// kernel. Errors: a channel that the integer arithmetic of the store engine would not give what
// rint(float(sum) * scale) is: a scale outside of its shifts, sums that may be too large
// (docs/internals/vdla.md).
Expected<std::vector<std::byte>> requant_table(const Kernel& kernel, const StreamParts& parts,
                                               std::span<const Constant> constants);

}  // namespace tw::vdla
