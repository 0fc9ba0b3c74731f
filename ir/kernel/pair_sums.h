// Rounding of the instructions that add two bf16 products at a time.
#pragma once
#include "ir/intrinsic.h"

namespace tw::interpreter {

struct FloatProduct {
  double left = 0, right = 0;  // bf16 numbers
};

// sum + first + second in the rule's rounding, as an f32 number. The rule is not in_order.
double add_pair(PairRule rule, double sum, const FloatProduct& first, const FloatProduct& second);

}  // namespace tw::interpreter
