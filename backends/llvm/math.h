// Elementary functions as straight-line code on scalars or lanes, f32 and f64 by the type of the
// argument (f16 and bf16 arrive as f32). No library calls. Largest errors found by
// tests/backends/math_test.cpp against the long double library functions:
//
//   function          f32 ulp  f64 ulp   range and method
//   exp               2        2         all; 2^k * polynomial; overflow gives inf, underflow
//                                        subnormals, then 0
//   exp2              2        2         all; a polynomial of 2^r; results below twice the
//                                        smallest normal number may be 0
//   expm1             2        2         all; near 0 it keeps its relative accuracy
//   log               2        2         all; subnormals are scaled first; 0 gives -inf, negative
//                                        NaN
//   log1p             2        2         all; log's method on an argument taken from x itself; -1
//                                        gives -inf, below NaN
//   tanh              4        4         all; through exp(2|x|) - 1, so small arguments keep their
//                                        relative accuracy
//   sigmoid           3        3         all; through exp(-|x|), so the negative tail keeps its
//                                        relative accuracy
//   erf               6        4         all; a rational function (f32); a polynomial below 1, 1 -
//                                        exp(-x^2) g(x) above (f64)
//   normal_cdf        6        9         all; exp(-x^2/2) times a rational function, so the
//                                        negative tail keeps its relative accuracy
//   sin, cos          2        3         all; reduced in f64, by three parts of pi/2 up to 2^20, by
//                                        the digits of 2/pi beyond
//   tan               4        4         as sin
//   asin, acos        4        4         NaN outside [-1, 1]
//   atan              3        3         all
//   pow               1        2 + 3 |y log x|   C's special cases; f32 is computed in f64
//   fmod              exact    exact     C's: the sign of x; NaN for y = 0 or x infinite
#pragma once

namespace llvm {
class Value;
}

namespace tw::codegen {
class Values;
llvm::Value* math_exp(Values& v, llvm::Value* x);
llvm::Value* math_exp2(Values& v, llvm::Value* x);
llvm::Value* math_expm1(Values& v, llvm::Value* x);
llvm::Value* math_log(Values& v, llvm::Value* x);
llvm::Value* math_log1p(Values& v, llvm::Value* x);
llvm::Value* math_tanh(Values& v, llvm::Value* x);
llvm::Value* math_erf(Values& v, llvm::Value* x);
llvm::Value* math_normal_cdf(Values& v, llvm::Value* x);
llvm::Value* math_sigmoid(Values& v, llvm::Value* x);
llvm::Value* math_sin(Values& v, llvm::Value* x);
llvm::Value* math_cos(Values& v, llvm::Value* x);
llvm::Value* math_tan(Values& v, llvm::Value* x);
llvm::Value* math_asin(Values& v, llvm::Value* x);
llvm::Value* math_acos(Values& v, llvm::Value* x);
llvm::Value* math_atan(Values& v, llvm::Value* x);
llvm::Value* math_pow(Values& v, llvm::Value* x, llvm::Value* y);
llvm::Value* math_fmod(Values& v, llvm::Value* x, llvm::Value* y);
// Integers: x to the power y by squaring, wrapping. A negative y gives 1 for x = 1, 1 or -1 for x =
// -1, and 0 for other x.
llvm::Value* math_ipow(Values& v, llvm::Value* x, llvm::Value* y, bool is_signed);
}  // namespace tw::codegen
