// The top of a row under a softmax: the largest number, which x86 finds in fewer instructions than
// a maximum that a NaN comes through. A NaN makes its own exponential and by that the sum, and so
// the whole row, NaN.
#pragma once
#include <limits>

#include "ir/expr.h"

namespace tw {

// The number that a maximum reads for x. More than a load is not worth being written twice.
inline Expr top_candidate(const Expr& x) {
  const auto* converted = as<expr::Cast>(x);
  if (!is<expr::Load>(converted ? converted->a : x)) return x;
  return select(unary(UnaryOp::is_nan, x), imm(-std::numeric_limits<double>::infinity(), x.type()),
                x);
}

}  // namespace tw
