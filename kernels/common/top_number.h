// The largest number of a row under a softmax. Ignoring NaN takes fewer x86 instructions than a
// maximum that lets it through. The result is NaN all the same: a NaN makes its own exponential
// NaN, so the sum and the whole row too.
#pragma once
#include <limits>

#include "ir/expr.h"

namespace tw {

// The number that the maximum reads for x. An expression larger than a load is not worth writing
// twice.
inline Expr top_candidate(const Expr& x) {
  const auto* converted = as<expr::Cast>(x);
  if (!is<expr::Load>(converted ? converted->a : x)) return x;
  return select(unary(UnaryOp::is_nan, x), imm(-std::numeric_limits<double>::infinity(), x.type()),
                x);
}

}  // namespace tw
