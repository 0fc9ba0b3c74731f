// The contents of a candidate's inputs, and what its outputs are compared by. Equal on every
// machine.
#pragma once
#include <span>
#include <string>

#include "autotune/measure.h"

namespace tw {

// Contents of parameter `index`. Floats: uniform in [-1, 1). 8-bit integers: their whole range.
// Wider ones: -1000 .. 1000, unsigned 0 .. 1000.
void fill_parameter(std::span<std::byte> bytes, DType dtype, uint64_t seed, size_t index);

uint64_t output_bytes(std::span<const BufferSpec> buffers);  // of all outputs together

// Empty, or the worst element: floats may be off by `tolerance` of the expected range (the smallest
// interval that holds 0 and all finite expected values), NaN and infinities must be the same;
// integers must be equal.
std::string output_difference(std::span<const std::byte> got, std::span<const std::byte> want,
                              DType dtype, double tolerance);

}  // namespace tw
