// In which floats products and convolutions are computed, and weights kept. Without an instruction
// for products of the type, weights alone are short.
#pragma once
#include "ir/target.h"
#include "support/diag.h"

namespace tw {

// Whether an instruction multiplies bf16 and sums in f32: of the first device, where there is one,
// else of the processor.
bool multiplies_bf16(const Target& target);

// The same of tf32: threads of the first device have an instruction for it together.
bool multiplies_tf32(const Target& target);

// For the target, its devices and the wider processors of the same library.
void set_precision(Target& target, Precision precision);

// What Target::precision comes to: automatic is bf16 where the target has an instruction for it
// and, as far as its rates say, more products a cycle by it than in f32, else fp32.
Precision precision_of(const Target& target);

// Errors: fp16 for a target with devices or without an instruction that widens f16, bf16 for a
// device without an instruction for it, tf32 for any target without one.
Error check_precision(const Target& target);

}  // namespace tw
