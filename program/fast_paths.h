// Fast paths of a program: extra calls for chosen sizes. A run takes them when its sizes match.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tw {

// Adds the calls of `special` to `program` as a fast path. `special` is the same model, lowered
// with the symbols in `sizes` bound. Kernels and weights that both have are stored once. If several
// fast paths fit a run, it takes the one added last. The result: for each kernel of `special`, its
// number in `program`. Errors: sizes that data decide, an If or Loop that remains at run time,
// devices, a symbol that the program does not have.
Expected<std::vector<int>> add_fast_path(Program& program, Program special,
                                         const std::map<std::string, int64_t>& sizes);

}  // namespace tw
