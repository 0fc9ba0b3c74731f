// The place of an operand's elements in the threads that execute an instruction together, read from
// the index maps of the instruction's semantics. Each axis of the matrix is a number whose digits
// count either threads or a thread's own elements.
//
//   row = thread // 4 + 8 * element, with 32 threads and 2 elements:
//   digits {stride 1, extent 8, thread 4} and {stride 8, extent 2, thread 0}
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw {

// The part `index / stride % extent` of an axis
struct PlacementDigit {
  int64_t stride = 1, extent = 1;
  int64_t thread = 0;  // amount that one step adds to the thread's number; 0: counts elements
};

struct OperandPlacement {
  std::array<int64_t, 2> extents{};                     // extents of the axes
  std::array<std::vector<PlacementDigit>, 2> digits{};  // digits of each axis, the lowest first
};

// The placement of a parameter [thread, element..] over two loops of the semantics. nullopt: the
// index map does not consist of digits, or threads share elements.
std::optional<OperandPlacement> placement_of(const Kernel& semantics, BufferId parameter,
                                             const std::array<std::string, 2>& axes,
                                             int64_t threads);

// The indices with which the semantics access a parameter; empty: they do not access it.
std::vector<Expr> indices_of(const Kernel& semantics, BufferId parameter);

}  // namespace tw
