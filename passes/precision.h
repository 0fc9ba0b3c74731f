// The floats in which products and convolutions are computed, and in which weights are kept. If no
// instruction multiplies the type, only weights are short.
#pragma once
#include "ir/target.h"
#include "support/diag.h"

namespace tw {

// True if an instruction multiplies bf16 and sums in f32. It is one of the first device if there is
// one, else of the processor.
bool multiplies_bf16(const Target& target);

// True if threads of the first device together have an instruction that multiplies tf32.
bool multiplies_tf32(const Target& target);

// Sets the precision of the target, its devices and the wider processors of the same library.
void set_precision(Target& target, Precision precision);

// The precision that Target::precision means. `automatic` is bf16 if the target has an instruction
// for it and its rates do not say that f32 is as fast; otherwise it is fp32.
Precision precision_of(const Target& target);

// Errors: fp16 for a target with devices or without an instruction that widens f16, bf16 for a
// device without an instruction for it, tf32 for any target without one.
Error check_precision(const Target& target);

}  // namespace tw
