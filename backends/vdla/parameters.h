// Computes the requantization parameters of a kernel's channels from its constants.
#pragma once
#include "backends/vdla/lower_nest.h"
#include "ir/program.h"

namespace tw::vdla {

// The bytes that load.prm reads: {bias, multiplier, shift} for each channel. `constants` has one
// for each parameter of the kernel. Errors: a channel for which the store engine's integer
// arithmetic would differ from rint(float(sum) * scale), because the scale is outside of its shifts
// or sums may be too large (docs/internals/vdla.md).
Expected<std::vector<std::byte>> requant_table(const Kernel& kernel, const StreamParts& parts,
                                               std::span<const Constant> constants);

}  // namespace tw::vdla
