// Conditions as far outside as they can stand: what all stores of a loop ask for, and no variable
// of it changes, becomes an if around the loop. Done right before code is made, so that schedules
// see the nests as they were written.
#pragma once
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw {

// The operands of its outermost &&s, in order; none when undefined
std::vector<Expr> conjuncts(const Expr& condition);
Expr conjunction(const std::vector<Expr>& conditions);  // undefined when there are none

// Computes the same. Conditions that read buffers stay; a where stays at a store whose init it must
// not guard.
Stmt hoist_guards(const Stmt& body);

}  // namespace tw
