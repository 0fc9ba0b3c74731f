// What an asynchronous store may do: copy an element, or zero where a condition does not hold.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// The load of `load` and of `select(condition, load, 0)`; undefined: the value is something else.
inline Expr copied_load(const Expr& value) {
  if (value->kind == ExprKind::load) return value;
  const bool zero = value->kind == ExprKind::select && value->args[1]->kind == ExprKind::load &&
                    ((value->args[2]->kind == ExprKind::float_imm &&
                      value->args[2]->float_value == 0) ||
                     is_const(value->args[2], 0));
  return zero ? value->args[1] : Expr();
}

}  // namespace tw
