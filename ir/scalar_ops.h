// Scalar arithmetic, shared by the reference evaluators and the interpreter. Values of every
// integer type travel as int64_t (u64 as its bits), wrapped to the type.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace tw {

int64_t wrap_to(DType type, int64_t value);  // bool: value != 0
// div, floor_div, floor_mod and mod: the right operand must not be 0
bool divides(BinaryOp op);
// The operands have type `type`. Comparisons and logical operators give 0 or 1. Shifts beyond the
// width give 0 or the sign.
int64_t int_binary(BinaryOp op, DType type, int64_t a, int64_t b);
// Casts `value` between integer types, bool included.
int64_t cast_int(DType type, DType from, int64_t value, bool saturate);
// Casts a float to an integer type or bool: truncates, and NaN gives 0. Without `saturate` the
// result is the low bits of the nearest 32-bit number; u32 and 64-bit types take the nearest 64-bit
// number.
int64_t float_to_int(DType type, double value, bool saturate);
int64_t floor_div_int(int64_t a, int64_t b);
int64_t floor_mod_int(int64_t a, int64_t b);
// Rounds to a float type as a cast does.
double round_to(DType type, double value, bool saturate = false);
// 1 / value where it is exact: `value` is a power of two, and the type holds the inverse.
// Multiplying by it then equals dividing by `value`.
std::optional<double> exact_inverse(DType type, double value);
// Rounds to 10 bits behind the leading one, halves away from zero.
float round_to_tf32(float value);
// These take operands of any float type, computed in double. Predicates and comparisons give 0 or
// 1. Bit operations are an internal error.
double sigmoid(double x);
double float_unary(UnaryOp op, double x);
double float_binary(BinaryOp op, double a, double b);

}  // namespace tw
