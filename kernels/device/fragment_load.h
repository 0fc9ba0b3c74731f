// Instructions by which threads together load their parts of an operand. They read rows of small
// matrices and distribute the elements.
#pragma once
#include <optional>

#include "kernels/device/tiles.h"

namespace tw {

struct FragmentLoad {
  const Intrinsic* intrinsic = nullptr;
  int64_t matrices = 1, below = 1;  // matrices go down first (`below` of them), then across
  int64_t rows = 1, columns = 1;    // extents of one matrix; its columns are adjacent in memory
};

// The operand, in memory order: left [row, depth], right [depth, column], or turned right [column,
// depth]
enum class FragmentOf : uint8_t { left, right, turned_right };
// nullopt: no instruction of the target leaves the elements with the threads from which
// `instruction` takes them.
std::optional<FragmentLoad> fragment_load(const Target& target, const TileInstruction& instruction,
                                          FragmentOf operand);

}  // namespace tw
