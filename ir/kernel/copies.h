// The values of asynchronous stores: a copied element, or 0 where a condition does not hold.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// The load in `load` or in `select(condition, load, 0)`; undefined: the value has neither form.
inline Expr copied_load(const Expr& value) {
  if (is<expr::Load>(value)) return value;
  const auto* choice = as<expr::Select>(value);
  if (!choice || !is<expr::Load>(choice->then)) return Expr();
  const auto* number = as<expr::Float>(choice->otherwise);
  const bool zero = number ? number->value == 0 : is_const(choice->otherwise, 0);
  return zero ? choice->then : Expr();
}

}  // namespace tw
