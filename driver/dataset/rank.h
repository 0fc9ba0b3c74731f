// How well a model that learns from a set's training tasks ranks programs of tasks that it has not
// seen, beside choices that learn nothing.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"

namespace tw {

// Scores of one way to choose, over tasks: the best time of the pool over that of what was chosen.
struct RankScore {
  std::string method;
  double top1 = 0, top5 = 0, top10 = 0;  // means of tasks
  double least = 0;                      // of top1
};
struct RankTable {
  std::string split;
  int tasks = 0;
  double pool = 0;  // programs of a task, mean
  std::vector<RankScore> scores;
};
struct RankRequest {
  int64_t platform = 0;
  std::vector<std::string> target_folders;
  int of_training = 96;  // programs of a task that a model learns from, at most
  int jobs = 1;
  uint64_t seed = 1;
  std::function<void(const std::string&)> watch = nullptr;
};
// Of tasks with labels on the platform: AutoTVM's trees over Ansor's features, one random program,
// the program most like the best one of the nearest training task, the default schedule. A table
// each of validation, test, and near. Errors: no labels of training.
Expected<std::vector<RankTable>> rank_tasks(DataSet& set, const RankRequest& request);

}  // namespace tw
