// The flags about speed, size and accuracy, which compile and lock must be given alike.
#pragma once
#include <string>

#include "cli/flags.h"
#include "ir/target.h"
#include "passes/choose/choose_algorithms.h"

namespace tw {

struct AlgorithmFlags {
  std::string algorithm;
  // Accuracy 0: the target's
  double accuracy = 0, max_weight_growth = AlgorithmOptions().max_weight_growth;

  void define(Flags& flags);
  // What they say of the target is written there. Errors: values out of range, no algorithm of that
  // name.
  Expected<AlgorithmOptions> options(Target& target) const;
};

}  // namespace tw
