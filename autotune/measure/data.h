// Makes the contents of a candidate's inputs and compares its outputs, equally on every machine.
#pragma once
#include <span>
#include <string>

#include "autotune/measure.h"

namespace tw {

// Fills parameter `index`. Floats are uniform in [-1, 1). 8-bit integers use their whole range.
// Wider integers lie in -1000 .. 1000, unsigned ones in 0 .. 1000.
void fill_parameter(std::span<std::byte> bytes, DType dtype, uint64_t seed, size_t index);

uint64_t output_bytes(std::span<const BufferSpec> buffers);  // bytes of all outputs together

// Empty, or a text about the worst element. Floats may be off by `tolerance` times the expected
// range (the smallest interval with 0 and all finite expected values); NaN and infinities must be
// equal. Integers must be equal.
std::string output_difference(std::span<const std::byte> got, std::span<const std::byte> want,
                              DType dtype, double tolerance);

}  // namespace tw
