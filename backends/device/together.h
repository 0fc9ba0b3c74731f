// Instructions that several threads execute together, and groups of asynchronous copies: the two
// other ways in which threads of a launch depend on each other, besides barriers.
#pragma once
#include "ir/schedule/intrinsic.h"
#include "support/diag.h"

namespace tw::device {

struct TogetherParts {
  // an empty loop over the threads, bound to the target's first axis of threads
  LoopRef threads;
  Kernel semantics;
  IntrinsicMatch operands;
  // The dimension of each operand's buffer that counts the threads; missing: the operand is spread
  std::map<std::string, size_t> dim;

  // The indices of the part that a thread has.
  std::vector<Expr> indices(const std::string& operand, const Expr& thread) const;
};
// Errors: the block does not match the instruction, or no dimension counts the threads.
Expected<TogetherParts> parts_of(const Kernel& kernel, const stmt::Block& block,
                                 const Target& target, const Ranges& ranges);

// Gives every wait its count: the number of groups of copies that may still be under way. A signal
// ends a group, even where its condition does not hold. Errors: groups that cannot be counted.
Expected<Stmt> with_group_counts(const Stmt& body);

}  // namespace tw::device
