// Numbers that temps hold where nothing is computed, and sums to which these add nothing.
#pragma once
#include <functional>

#include "ir/kernel/kernel.h"
#include "ir/simplify.h"

namespace tw::sched {

// The value for which combine(identity, v) is v
Expr identity_of(Combiner combiner, DType type);

// Decides whether a condition fails wherever the question is asked.
using Fails = std::function<bool(const Expr& condition)>;

// True: a parameter, or a temp of which one stage writes each element. guarded: the stage's
// condition may leave some out
bool is_whole(const Kernel& kernel, BufferId buffer, bool guarded = false);

// A condition of the store at another place of its buffer. undefined: an index of the store is no
// loop's variable.
Expr at_place(Expr condition, const stmt::Store& store, const std::vector<Expr>& place);
// True: the condition is one of those that `where` asks for.
bool asks_for(const Expr& where, const Expr& condition, const Ranges& ranges);

// True: all computed elements that a value reads were written, as the condition under which it is
// made and those of the stores that write them show. ranges: those of the loops around it
bool reads_written(const Kernel& kernel, const Expr& value, const Expr& where,
                   const Ranges& ranges);

// True: the store combines what counts for nothing, wherever `fails` says so of the conditions
// under which its operands were computed. 0 times any integer is 0, while floats may be infinite:
// `finite` says that they are not.
bool adds_nothing(const Kernel& kernel, const stmt::Store& store, const Ranges& ranges,
                  const Fails& fails, bool finite = false);

}  // namespace tw::sched
