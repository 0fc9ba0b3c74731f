// The tasks of a model: its distinct kernels as the compiler would make them, each with its other
// algorithms.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autotune/task.h"

namespace tw {

// For a target with devices: those of the first one. dims: symbolic dimensions that are bound.
// Errors: of import, passes and lowering.
Expected<std::vector<Task>> model_tasks(const std::string& path,
                                        const std::map<std::string, int64_t>& dims,
                                        const Target& target);

}  // namespace tw
