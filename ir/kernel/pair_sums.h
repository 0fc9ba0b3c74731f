// How instructions that add two products of bf16 at a time round.
#pragma once
#include "ir/intrinsic.h"

namespace tw::interpreter {

struct FloatProduct {
  double left = 0, right = 0;  // numbers of bf16
};

// sum + first + second, as f32 holds it. Not for in_order.
double add_pair(PairRule rule, double sum, const FloatProduct& first, const FloatProduct& second);

}  // namespace tw::interpreter
