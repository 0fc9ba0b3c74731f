// The flag --precision: in which floats products multiply and weights are kept. What tunes, locks
// and compiles one model must be given the same.
#pragma once
#include <string>
#include <vector>

#include "cli/flags.h"
#include "ir/target.h"
#include "passes/quantized_rounding.h"

namespace tw {

struct PrecisionFlag {
  std::string name;  // "": what the target says

  void define(Flags& flags);
  // Makes it the target's. Errors: there is no such precision, or the target has no instruction
  // that it wants.
  Error apply(Target& target) const;
};

// The flag --quantized-rounding; what tunes, locks and compiles one model must be given the same.
struct RoundingFlag {
  std::string name = quantized_rounding_name(QuantizedRounding::standard);

  void define(Flags& flags);
  Expected<QuantizedRounding> read() const;
};

// A line each: what auto came to, and what the target does not multiply.
std::vector<std::string> precision_notes(const Target& target);

}  // namespace tw
