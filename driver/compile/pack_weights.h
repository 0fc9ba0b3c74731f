// Packs the weights of an artifact.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include <span>

#include "ir/program.h"
#include "support/diag.h"

namespace tw {

// Makes the weights of a program piece by piece. `fill(offset, size, body)` hands body the zeroed
// bytes to write; several threads call it for different pieces. Pack kernels are compiled for the
// build host's baseline instruction set, so that every host writes the same bytes.
using FillWeights = llvm::function_ref<Error(uint64_t offset, uint64_t size,
                                             llvm::function_ref<Error(std::span<std::byte>)> body)>;
Error pack_weights(const Program& program, FillWeights fill, int jobs);

}  // namespace tw
