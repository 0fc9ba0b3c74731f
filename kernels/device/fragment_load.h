// Instructions by which threads load together what each has of an operand: rows of small matrices,
// whose elements they deal out among them.
#pragma once
#include <optional>

#include "kernels/device/tiles.h"

namespace tw {

struct FragmentLoad {
  const Intrinsic* intrinsic = nullptr;
  int64_t matrices = 1, below = 1;  // matrices below each other first, then those beside them
  int64_t rows = 1, columns = 1;    // of one matrix; memory has columns side by side
};

// Which operand, as memory has it: the left one [row, depth], the right one [depth, column], or
// that [column, depth].
enum class FragmentOf : uint8_t { left, right, turned_right };
// nullopt: the target has none that leaves the elements with the threads that the instruction wants
// them of.
std::optional<FragmentLoad> fragment_load(const Target& target, const TileInstruction& instruction,
                                          FragmentOf operand);

}  // namespace tw
