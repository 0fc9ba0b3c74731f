// Finds the part of a kernel that a hardware instruction computes: the instruction is given as a kernel.
#pragma once
#include <map>

#include "ir/kernel/kernel.h"
#include "ir/simplify.h"

namespace tw {

// Where an instruction's operand lies: from this element on, as densely as the instruction has it.
struct IntrinsicOperand {
  BufferId buffer;
  std::vector<Expr> at;         // in variables outside of the nest
};
using IntrinsicMatch = std::map<std::string, IntrinsicOperand>;  // by the instruction's parameters

// The nest computes what the instruction does: the same loops in the same order, the same expression (operands of + * min max may be swapped), and
// every operand's elements in memory as the instruction has them. Errors: illegal_schedule, saying what differs. `ranges`: what is around.
Expected<IntrinsicMatch> match_intrinsic(const Kernel& instruction, const Kernel& kernel, const Stmt& nest, const Ranges& ranges);

}  // namespace tw
