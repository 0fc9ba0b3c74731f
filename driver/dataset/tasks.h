// Adds tasks to a data set: layers of networks, and layers drawn from a prior over these.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/dataset/split.h"

namespace tw {

struct TaskRequest {
  std::vector<std::string> networks;  // ONNX files; a family is the letters that a name begins with
  std::vector<std::string> lowered_for;  // targets; a layer's key selects one
  std::vector<std::string> target_folders;
  int from_networks = 240, sampled = 240;  // most tasks of each kind
  double least_flops = 2e5, most_flops = 2e9;
  SplitRule rule;
  uint64_t seed = 1;
  std::function<void(const std::string&)> watch = nullptr;  // told of each file that is read
};

struct TaskOutcome {
  int from_networks = 0, sampled = 0, known = 0;  // new tasks; tasks that were there
  int drawn = 0, impossible = 0;                  // layers drawn by the prior; invalid of these
  std::vector<std::string> skipped;               // networks that do not import, with the reason
};

// Adds missing tasks to the set. Families take turns, so that a small one counts as much as a large
// one. A prior draws the sampled tasks; its table is the layers of training networks alone. Marks
// the splits at the end. Errors: no network that can be read.
Expected<TaskOutcome> add_tasks(DataSet& set, const TaskRequest& request);

// Adds the layers of the tasks of `from`, which may be the set itself, by each of these algorithms
// that applies within the accuracy of the target that they are lowered for. Splits are as in
// `from`. Returns the number of new tasks.
Expected<int> add_algorithms(DataSet& set, DataSet& from, std::span<const Algorithm> algorithms,
                             const std::vector<std::string>& target_folders);

// Marks the split of every task by the rule. Test tasks that are like a training task become
// `near`. Returns the number of tasks of each split.
Expected<std::vector<int>> mark_splits(DataSet& set, const SplitRule& rule);

// "resnet" for "models/resnet50.onnx"
std::string network_family(const std::string& path);

}  // namespace tw
