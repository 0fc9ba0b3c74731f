// Compares ways to choose fast programs for tasks that they have not seen: predictors, a model that
// learned from a set's training tasks, and choices that learn nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/models/predictor.h"

namespace tw {

// Scores of one way to choose: the best time of the pool over the time of the choice
struct RankScore {
  std::string method;
  double top1 = 0, top5 = 0, top10 = 0;  // means over tasks, for the best of 1, 5 and 10 choices
  double least = 0;                      // smallest top1 of a task
};
struct RankTable {
  std::string split;
  int tasks = 0;
  double pool = 0;  // mean number of programs of a task
  std::vector<RankScore> scores;
};
struct RankRequest {
  int64_t platform = 0;
  std::vector<std::string> target_folders;
  int of_training = 96;  // programs of a task that a model learns from, at most
  int of_pool = 0;       // programs of a task that are ranked, at most; 0: all
  bool trees = true;     // also by trees that learn from the training tasks
  std::vector<std::shared_ptr<const PredictorSet>> predictors;  // also by these
  int jobs = 1;
  uint64_t seed = 1;
  std::function<void(const std::string&)> watch = nullptr;
};
// Ranks the programs of tasks with labels on the platform: one random program, the program most
// like the best one of the nearest training task, the default schedule, AutoTVM's trees over
// Ansor's features, and predictors. Returns a table for each of validation, test and near. Errors:
// no training labels.
Expected<std::vector<RankTable>> rank_tasks(DataSet& set, const RankRequest& request);

}  // namespace tw
