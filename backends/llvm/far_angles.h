// Reduces angles far from 0, with as many digits of 2/pi as they need.
#pragma once

#include "backends/llvm/values.h"

namespace tw::codegen {

// Angles up to this one are reduced by multiples of a rounded pi/2.
inline constexpr double kFarAngle = 0x1p20;

struct ReducedAngle {
  Value* rest;      // f64 lanes, in [-pi/4, pi/4]
  Value* quadrant;  // i64 lanes, modulo 4
};

// angle = quadrant * pi/2 + rest, exact to the last place or two of the rest. The rest of an
// infinity or NaN is NaN. `angle` has lanes of f64, or is a scalar. Angles up to kFarAngle give
// meaningless results. After Payne and Hanek, "Radian Reduction for Trigonometric Functions", 1983.
ReducedAngle reduce_far_angle(Values& v, Value* angle);

}  // namespace tw::codegen
