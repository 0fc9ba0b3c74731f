// Fills a data set: makes programs of its tasks and measures them, here or by a worker.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/models/predictor.h"
#include "ir/target.h"

namespace tw {

// A target that this machine can stand for, and the number of threads
struct PlatformChoice {
  std::string target;
  int threads = 1;
};
// "x86-64-v3:2"
Expected<PlatformChoice> parse_platform(const std::string& text);
// The platforms of this machine: those of x86-64-v4, v3 and v2 whose features it has, on one
// thread, and the best of them on two; for another architecture `host` on one and two
std::vector<std::string> usual_platforms(const std::vector<std::string>& target_folders);

struct MakeRequest {
  std::vector<PlatformChoice> platforms;
  std::vector<std::string> target_folders;
  std::vector<Split> splits;               // tasks of these splits alone; empty: all tasks
  int for_training = 160, for_test = 512;  // labelled programs of a task
  double seconds = 0;                      // limit; 0: until everything is labelled
  int jobs = 1;                            // threads that build
  std::string worker;                      // folder of a worker that measures; empty: this machine
  // If set, a call does not add missing labels. Each complete task gets `extended_by` programs that
  // the predictors' search asks for.
  std::shared_ptr<const PredictorSet> predictors = nullptr;
  int extended_by = 0;
  uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> watch = nullptr;  // told of each task that begins
};

struct MakeOutcome {
  int64_t labels = 0, again = 0;  // new labels of the first pass; of the second
  int tasks = 0;                  // (task, platform) pairs that were finished
  int left = 0;                   // (task, platform) pairs without all labels
  double seconds = 0;
  std::vector<std::string> failures;  // tasks that could not be measured, with the reason
};

// Takes tasks in an order that the seed alone decides, so that every prefix is a fair sample, and
// each task on all platforms before the next task. Does not repeat earlier work. Each batch is
// stored when it is measured. Errors: a platform that this machine cannot be.
Expected<MakeOutcome> make_labels(DataSet& set, const MakeRequest& request);

}  // namespace tw
