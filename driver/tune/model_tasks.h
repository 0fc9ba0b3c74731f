// The tasks of a model: its distinct kernels as the compiler would make them, each with its other
// algorithms.
#pragma once
#include <string>
#include <vector>

#include "autotune/task.h"
#include "frontend/frontend.h"

namespace tw {

// For a target with devices: those of the first one.
// Errors: of import, passes and lowering.
Expected<std::vector<Task>> model_tasks(const std::string& path, const ImportOptions& options,
                                        const Target& target);

}  // namespace tw
