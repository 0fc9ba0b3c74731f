// Finds the part of a kernel that a hardware instruction computes: the instruction is given as a
// kernel.
#pragma once
#include <map>

#include "ir/kernel/kernel.h"
#include "ir/simplify.h"
#include "ir/target.h"

namespace tw {

// Where an instruction's operand lies: from this element on, as densely as the instruction has it.
// Spread: each thread's part of what threads take by address lies for itself, from an element on
// that kEachThread, the thread's number, says.
struct IntrinsicOperand {
  BufferId buffer;
  std::vector<Expr> at;  // in variables outside of the nest
  bool spread = false;
};
inline constexpr const char* kEachThread = "each.thread";
using IntrinsicMatch = std::map<std::string, IntrinsicOperand>;  // by the instruction's parameters

// The semantics parsed, once where a description was read.
Expected<std::shared_ptr<const Kernel>> semantics_of(const Intrinsic& intrinsic);

// The threads that do a block's instruction together; 1: it is one of a single thread, or none.
int64_t threads_together(const StmtNode& s, const Target& target);

// The nest computes what the instruction does: the same loops in the same order, the same
// expression (operands of + * min max may be swapped), and every operand's elements in memory as
// the instruction has them. Errors: illegal_schedule, saying what differs. `ranges`: what is
// around.
Expected<IntrinsicMatch> match_intrinsic(const Intrinsic& intrinsic, const Kernel& semantics,
                                         const Kernel& kernel, const Stmt& nest,
                                         const Ranges& ranges);

// In code for one of the threads that do an instruction together, the block holds a store a
// parameter instead, which names it (the label) and where the thread's part of it begins.
Stmt part_of_operands(const Kernel& instruction, const stmt::Block& block,
                      const IntrinsicMatch& match);
Expected<IntrinsicMatch> operands_of_part(const Kernel& instruction, const stmt::Block& block);

}  // namespace tw
