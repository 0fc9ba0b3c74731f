// Where the threads that do an instruction together hold the elements of an operand, read from the
// index maps of the instruction's semantics: each axis of the matrix falls into digits, and a digit
// counts threads or elements of a thread.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw {

// The part `index / stride % extent` of an axis.
struct PlacementDigit {
  int64_t stride = 1, extent = 1;
  int64_t thread = 0;  // what one step of it adds to the thread's number; 0: another element
};

struct OperandPlacement {
  std::array<int64_t, 2> extents{};                     // of the axes
  std::array<std::vector<PlacementDigit>, 2> digits{};  // of each axis, the lowest first
};

// Of a parameter [thread, element..] over two of the semantics' loops. nullopt: the map is not one
// of digits, or does not give every thread its own elements.
std::optional<OperandPlacement> placement_of(const Kernel& semantics, BufferId parameter,
                                             const std::array<std::string, 2>& axes,
                                             int64_t threads);

// The indices with which the semantics access a parameter; none: they do not.
std::vector<Expr> indices_of(const Kernel& semantics, BufferId parameter);

}  // namespace tw
