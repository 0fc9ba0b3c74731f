// What a data set is of: layers of networks, and layers drawn from what networks have.
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
  std::vector<std::string> lowered_for;  // targets, in turns
  std::vector<std::string> target_folders;
  int from_networks = 240, sampled = 240;  // so many of each, if there are
  double least_flops = 2e5, most_flops = 2e9;
  SplitRule rule;
  uint64_t seed = 1;
  std::function<void(const std::string&)> watch = nullptr;  // what it is at
};

struct TaskOutcome {
  int from_networks = 0, sampled = 0, known = 0;  // new ones; that were there already
  int drawn = 0, impossible = 0;                  // by the prior: layers, those that cannot be
  std::vector<std::string> skipped;               // networks that do not import, with the reason
};

// Adds what is missing to the set: families in turns, so that a small one counts as much as a large
// one; half of all from the prior, whose table is the layers of training alone. The splits follow.
// Errors: no network that can be read.
Expected<TaskOutcome> add_tasks(DataSet& set, const TaskRequest& request);

// The layers of the tasks of `from`, which may be the set itself, by each of these algorithms that
// applies within the accuracy of the target that they are lowered for. Their splits are those of
// `from`. The result: how many are new.
Expected<int> add_algorithms(DataSet& set, DataSet& from, std::span<const Algorithm> algorithms,
                             const std::vector<std::string>& target_folders);

// Marks every task by the rule, and those of test that are like one of training. The result: how
// many of each split.
Expected<std::vector<int>> mark_splits(DataSet& set, const SplitRule& rule);

// "resnet" of "models/resnet50.onnx"
std::string network_family(const std::string& path);

}  // namespace tw
