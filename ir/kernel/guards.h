// Moves conditions as far out as possible. A condition that all stores of a loop share, and that no
// variable of the loop changes, becomes an if around the loop. This happens right before code
// generation, so schedules see the nests as written.
#pragma once
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw {

// The operands of the outermost &&s, in order; empty for an undefined condition
std::vector<Expr> conjuncts(const Expr& condition);
Expr conjunction(const std::vector<Expr>& conditions);  // undefined when there are none

// The result computes the same. Conditions that read buffers stay. A where stays at a store whose
// init it must not guard.
Stmt hoist_guards(const Stmt& body);

}  // namespace tw
