// Fills a data set: programs of its tasks are made and measured on this machine.
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

// A target that this machine can stand for, and so many threads.
struct PlatformChoice {
  std::string target;
  int threads = 1;
};
// "x86-64-v3:2"
Expected<PlatformChoice> parse_platform(const std::string& text);
// What this machine can be: x86-64-v4, v3 and v2 on one thread and the best of them on two, or for
// another architecture this machine's own description on one and two.
std::vector<std::string> usual_platforms(const std::vector<std::string>& target_folders);

struct MakeRequest {
  std::vector<PlatformChoice> platforms;
  std::vector<std::string> target_folders;
  std::vector<Split> splits;               // tasks of these alone; empty: all
  int for_training = 160, for_test = 512;  // programs of a task
  double seconds = 0;                      // 0: until all is there
  int jobs = 1;                            // threads that build
  std::string worker;                      // who measures; empty: this machine
  // Where there are any: instead of what is missing, so many programs of each complete task that
  // the predictors' search asks for.
  std::shared_ptr<const PredictorSet> predictors = nullptr;
  int extended_by = 0;
  uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> watch = nullptr;  // what it is at
};

struct MakeOutcome {
  int64_t labels = 0, again = 0;  // new ones of the first pass, of the second
  int tasks = 0;                  // that were finished on a platform
  int left = 0;                   // (task, platform) that are not
  double seconds = 0;
  std::vector<std::string> failures;  // tasks that could not be measured, with the reason
};

// Tasks in an order that the seed alone decides, so that every prefix is a fair sample; all
// platforms of a task before the next one. What is there is not done again. Each batch is stored
// when it is measured. Errors: a platform that this machine cannot be.
Expected<MakeOutcome> make_labels(DataSet& set, const MakeRequest& request);

}  // namespace tw
