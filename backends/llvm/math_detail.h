// Helpers of math.cpp and math_trig.cpp
#pragma once
#include <span>

#include "backends/llvm/math_tables.h"
#include "backends/llvm/values.h"

namespace tw::codegen::math_detail {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.69314718055994531,
                 kHalfPi = 1.5707963267948966;

inline bool is_f32(Value* x) { return x->getType()->getScalarType()->isFloatTy(); }

// The table for x's precision
#define TW_TABLE(x, name) \
  (is_f32(x) ? std::span<const double>(name##F32) : std::span<const double>(name##F64))

// c[0] + c[1] x + ..
Value* polynomial(Values& v, Value* x, std::span<const double> c);

struct Reduced {
  Value* count;  // integer lanes of x's width
  Value* rest;
};
// x = count * step + rest, |rest| <= step / 2. The step is given as its reciprocal and as parts
// that sum to it.
Reduced reduce(Values& v, Value* x, double per_step, std::span<const double> step_parts);

Value* power_of_two(Values& v, Value* k, bool f32);
Value* clamp(Values& v, Value* x, double low, double high);

}  // namespace tw::codegen::math_detail
