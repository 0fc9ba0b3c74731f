// Angles far from 0, brought near it by as many digits of 2/pi as they reach.
#pragma once

#include "backends/llvm/values.h"

namespace tw::codegen {

// Angles up to here are reduced by multiples of a rounded pi/2.
inline constexpr double kFarAngle = 0x1p20;

struct ReducedAngle {
  Value* rest;      // f64 lanes, in [-pi/4, pi/4]
  Value* quadrant;  // i64 lanes: any multiple of 4 may be added
};

// angle = quadrant * pi/2 + rest, to the last place or two of the rest, which is NaN of an infinity
// or NaN. `angle`: lanes of f64, or a scalar; angles up to kFarAngle have no meaning here. After
// Payne and Hanek, "Radian Reduction for Trigonometric Functions", 1983.
ReducedAngle reduce_far_angle(Values& v, Value* angle);

}  // namespace tw::codegen
