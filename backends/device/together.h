// Instructions that several threads do together, and groups of asynchronous copies: what a launch's
// threads need of each other besides barriers.
#pragma once
#include "ir/schedule/intrinsic.h"
#include "support/diag.h"

namespace tw::device {

struct TogetherParts {
  // a loop over them, of the target's first axis of threads, with nothing in it
  LoopRef threads;
  Kernel semantics;
  IntrinsicMatch operands;
  // Of each operand's buffer, which counts the threads; none: spread
  std::map<std::string, size_t> dim;

  // Of the parts that a thread of that number has.
  std::vector<Expr> indices(const std::string& operand, const Expr& thread) const;
};
// Errors: the block is not what the instruction does, or no dimension counts the threads.
Expected<TogetherParts> parts_of(const Kernel& kernel, const stmt::Block& block,
                                 const Target& target, const Ranges& ranges);

// Every wait with the number of groups that may still be under way behind it as its count: a signal
// ends a group of copies, whether its condition holds or not. Errors: what cannot be counted.
Expected<Stmt> with_group_counts(const Stmt& body);

}  // namespace tw::device
