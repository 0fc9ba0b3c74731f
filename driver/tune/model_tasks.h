// The tasks of a model: its distinct kernels as the compiler would make them, each with its other
// algorithms.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autotune/task.h"
#include "frontend/frontend.h"
#include "passes/quantized_rounding.h"

namespace tw {

// By algorithm, the values that may not be made by it
using RefusedAlgorithms = std::map<Algorithm, std::set<std::string>>;

struct TaskChoices {
  QuantizedRounding rounding = QuantizedRounding::standard;
  // Values that are made in the model's own numbers, whatever the target's precision
  std::set<std::string> exact = {};
  RefusedAlgorithms refused = {};  // a task lacks an algorithm that all its values refuse
};
// For a target with devices, the tasks of the first one. Errors: import, passes or lowering fail.
Expected<std::vector<Task>> model_tasks(const std::string& path, const ImportOptions& options,
                                        const Target& target, const TaskChoices& choices = {});

}  // namespace tw
