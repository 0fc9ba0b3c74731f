// Finds the part of a kernel that a hardware instruction computes. The instruction is given as a
// kernel.
#pragma once
#include <map>

#include "ir/kernel/kernel.h"
#include "ir/simplify.h"
#include "ir/target.h"

namespace tw {

// The place of an instruction's operand: it begins at this element and is as dense as the
// instruction requires. `spread` is for operands that threads take by address. Each thread's part
// then lies apart. `at` gives its first element in terms of kEachThread, the thread's number.
struct IntrinsicOperand {
  BufferId buffer;
  std::vector<Expr> at;  // in variables outside the nest
  bool spread = false;
};
inline constexpr const char* kEachThread = "each.thread";
using IntrinsicMatch = std::map<std::string, IntrinsicOperand>;  // by the instruction's parameters

// The parsed semantics. They are parsed anew only if the description's reader has not done so.
Expected<std::shared_ptr<const Kernel>> semantics_of(const Intrinsic& intrinsic);

// The threads that execute a block's instruction together; 1: a single thread does, or the block
// has none.
int64_t threads_together(const StmtNode& s, const Target& target);

// Matches a nest with an instruction. Both must have the same loops in the same order and the same
// expression, up to swapped operands of + * min max. Every operand's elements must lie in memory as
// the instruction requires. Errors: illegal_schedule, naming the difference. ranges: of the
// variables around the nest.
Expected<IntrinsicMatch> match_intrinsic(const Intrinsic& intrinsic, const Kernel& semantics,
                                         const Kernel& kernel, const Stmt& nest,
                                         const Ranges& ranges);

// Requires that every block of an instruction still computes what the instruction does: steps
// behind tensorize may have changed it.
Error check_instructions(const Kernel& kernel, const Target& target);

// Code for one of several threads that execute an instruction together has a special form of the
// block. It holds one store for each parameter: the label names the parameter, and the indices say
// where the thread's part begins. part_of_operands writes this form, and operands_of_part reads it.
Stmt part_of_operands(const Kernel& instruction, const stmt::Block& block,
                      const IntrinsicMatch& match);
Expected<IntrinsicMatch> operands_of_part(const Kernel& instruction, const stmt::Block& block);

}  // namespace tw
