// The text form of expressions. Kernels, graphs (dims) and everything else that prints expressions
// share it.
//
//   select(i < n && j != 0, x[i, j] * 2.0, f32(y[i] // 3))
//
// * 1.5 is f32 and 3 is i64. Other types carry a suffix: 1.5:f64, 3:i32, n:i32 (a variable). true
//   and false are bool.
// * Precedence, loosest first: || && then < <= > >= == != then | ^ & then << >> then + - then * /
//   // % then - ! ~ (prefix).
// * a // b is floor_div, a % b floor_mod, a / b div. Everything else is a call: min(a, b), exp(x),
//   select(c, a, b), f32(x), sat.u8(x).
#pragma once
#include <functional>
#include <optional>
#include <string_view>

#include "ir/expr.h"
#include "support/lexer.h"

namespace tw {

struct LoadTarget {
  BufferId buffer;
  DType type;
};
struct ExprScope {
  std::function<std::optional<LoadTarget>(std::string_view name)> buffer;  // null: loads are errors
};
// An integer literal without a suffix takes the type of the other operand (x * 2 with x in f32).
Expected<Expr> parse_expr(Lexer& lexer, const ExprScope& scope = {});
Expected<Expr> parse_expr(std::string_view text, const ExprScope& scope = {});
// A whole-number literal becomes `type`; any other expression must have that type already.
Expected<Expr> parse_expr_of(Lexer& lexer, DType type, const ExprScope& scope);

}  // namespace tw
