// In which floats products and convolutions are computed.
#pragma once
#include "passes/pass.h"

namespace tw {

// automatic: bf16 where the target has an instruction for it.
enum class Precision : uint8_t { fp32, bf16, automatic };
// Errors: none of that name.
Expected<Precision> precision_from_name(std::string_view name);

// Whether an instruction of the processor multiplies bf16 and sums in f32.
bool multiplies_bf16(const Target& target);

// The default pipeline, with narrow-products where the precision asks for it. Errors: bf16 on a
// target without an instruction for it, or with devices.
Expected<std::vector<std::string>> pipeline_of(Precision precision, const Target& target);

}  // namespace tw
