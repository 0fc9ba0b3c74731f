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

// True: all elements of temps that the value reads were written, as the conditions of the store and
// of those that write them show. ranges: those of the loops around the store
bool reads_written(const Kernel& kernel, const stmt::Store& store, const Ranges& ranges);

// True: the store combines what counts for nothing, wherever `fails` says so of the conditions
// under which its operands were computed. 0 times any integer is 0, while floats may be infinite:
// `finite` says that they are not.
bool adds_nothing(const Kernel& kernel, const stmt::Store& store, const Ranges& ranges,
                  const Fails& fails, bool finite = false);

}  // namespace tw::sched
