// Tasks of a model without their keys, which need no log. Stands in for autotune's tasks_of.
#pragma once
#include <string>
#include <vector>

#include "autotune/task.h"

namespace tw {
// The model's distinct kernels as the compiler would make them, each with its other algorithms. Errors: of import, passes and lowering.
Expected<std::vector<Task>> model_tasks(const std::string& path, const std::map<std::string, int64_t>& dims, const Target& target);
}  // namespace tw
