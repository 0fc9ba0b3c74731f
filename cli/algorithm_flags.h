// The flags about speed, size and accuracy, which compile and lock must be given alike.
#pragma once
#include <string>

#include "cli/flags.h"
#include "ir/target.h"
#include "passes/choose/choose_algorithms.h"

namespace tw {

struct AlgorithmFlags {
  std::string algorithm;
  // accuracy 0: the target's own
  double accuracy = 0, max_weight_growth = AlgorithmOptions().max_weight_growth;

  void define(Flags& flags);
  // Writes the accuracy into the target. Errors: values out of range, no algorithm of that name.
  Expected<AlgorithmOptions> options(Target& target) const;
};

}  // namespace tw
