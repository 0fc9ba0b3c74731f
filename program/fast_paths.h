// A program with calls of their own for chosen sizes, taken while running when the sizes are those.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tw {

// Adds `special`, the same model lowered with the symbols in `sizes` bound, to `program`: kernels
// and weights that both have are there once. Of several fast paths that fit a run the last one
// added is taken. The result: of each kernel of `special` its number in `program`. Errors: sizes
// that are made from data, If and Loop computed while running, devices; a symbol that the program
// does not have.
Expected<std::vector<int>> add_fast_path(Program& program, Program special,
                                         const std::map<std::string, int64_t>& sizes);

}  // namespace tw
