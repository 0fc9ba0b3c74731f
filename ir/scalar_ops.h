// Scalar arithmetic, shared by the reference evaluators and the interpreter. Integers: values of
// every integer type travel as int64_t (u64 by bit pattern), wrapped to the type.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace tw {

int64_t wrap_to(DType type, int64_t value);  // bool: value != 0
// Div floor_div floor_mod mod: the right operand may not be 0
bool divides(BinaryOp op);
// Operands have type `type`; comparisons and logical operators give 0 or 1. Shifts beyond the width
// give 0 or the sign.
int64_t int_binary(BinaryOp op, DType type, int64_t a, int64_t b);
// A cast between integer types (bool too) of a value of type `from`.
int64_t cast_int(DType type, DType from, int64_t value, bool saturate);
// A cast of a float to an integer type or bool: truncates, NaN is 0. Unless it saturates, it keeps
// the low bits of the nearest number that 32 bits hold, for u32 and types of 64 bits that 64 hold.
int64_t float_to_int(DType type, double value, bool saturate);
int64_t floor_div_int(int64_t a, int64_t b);
int64_t floor_mod_int(int64_t a, int64_t b);
// As a cast to a float type does
double round_to(DType type, double value, bool saturate = false);
// 1 / value, if it is exact: of a power of two, where the type holds it. A product by it is then
// what a division by the value is.
std::optional<double> exact_inverse(DType type, double value);
// To 10 bits behind the leading one, halves away from zero.
float round_to_tf32(float value);
// Of float operands of any type, in double; predicates and comparisons give 0 or 1. Bit operations
// are an internal error.
double sigmoid(double x);
double float_unary(UnaryOp op, double x);
double float_binary(BinaryOp op, double a, double b);

}  // namespace tw
