// The flag --precision: the type of float that products multiply and weights are kept in. tune,
// lock and compile must be given the same one for a model.
#pragma once
#include <string>
#include <vector>

#include "cli/flags.h"
#include "ir/target.h"
#include "passes/quantized_rounding.h"

namespace tw {

struct PrecisionFlag {
  std::string name;  // "": the target's own

  void define(Flags& flags);
  // Sets the target's precision. Errors: there is no such precision, or the target lacks an
  // instruction that it needs.
  Error apply(Target& target) const;
};

// The flag --quantized-rounding. tune, lock and compile must be given the same one for a model.
struct RoundingFlag {
  std::string name = quantized_rounding_name(QuantizedRounding::standard);

  void define(Flags& flags);
  Expected<QuantizedRounding> read() const;
};

// Notes: the choice that auto made, and a type that the target does not multiply
std::vector<std::string> precision_notes(const Target& target);

}  // namespace tw
