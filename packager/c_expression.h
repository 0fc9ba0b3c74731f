// Expressions of sizes as C, for headers.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tw {

// The C of a variable; nothing for one that C cannot know before a run.
using CVariable = std::function<std::optional<std::string>(std::string_view name)>;

// Long parts are constants of their own, which stand before the value, a line each.
struct CExpression {
  std::string statements, value;
};

// Nothing for an expression with such a variable, or with what no size is made of. `stem`: what the
// constants are called, before their numbers.
std::optional<CExpression> c_expression(const Expr& e, const CVariable& variable,
                                        const std::string& stem);

// The functions that these expressions call, once for all headers of a program.
std::string c_expression_functions();

}  // namespace tw
