// The form of a stored value that the store engine can compute: clamp(round(float(acc + biases) *
// scale) + zero point)
#pragma once
#include "backends/vdla/isa.h"
#include "ir/kernel/kernel.h"

namespace tw::vdla {

struct RequantForm {
  StoreMode mode = StoreMode::q8;  // q8 or sat
  int64_t zero_point = 0, low = -128, high = 127;
  Expr acc;                  // the load of the accumulator
  std::vector<Expr> biases;  // loads of i32 constants
  // Undefined, or the index of a channel below which the value matters
  Expr guarded;
  Expr scale;  // a load of an f32 constant, or an immediate; q8 only
};
// Errors: a value that the engine cannot compute.
Expected<RequantForm> requant_form(const Kernel& kernel, const Expr& value);

}  // namespace tw::vdla
