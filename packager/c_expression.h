// Writes expressions of sizes as C, for the generated headers.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tw {

// The C of a variable; nothing where C cannot know its value before a run
using CVariable = std::function<std::optional<std::string>(std::string_view name)>;

// A C expression. Each long part is a constant in `statements`, a line each, which stand before
// `value`.
struct CExpression {
  std::string statements, value;
};

// Writes `e` as C. The result is empty where `e` has a variable without C, or an operator that no
// size is made of. `stem` begins the constants' names, and numbers end them.
std::optional<CExpression> c_expression(const Expr& e, const CVariable& variable,
                                        const std::string& stem);

// The functions that these expressions call. A guard keeps them unique among all headers of a
// program.
std::string c_expression_functions();

}  // namespace tw
