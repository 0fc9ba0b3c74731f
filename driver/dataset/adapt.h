// Fits predictors to a chip that they have not seen: some programs of a data set are measured
// there, or a tuning log has measured others, and each predictor gets a linear head of its own over
// its embedding.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "ir/target.h"

namespace tw {

struct AdaptRequest {
  std::string target;
  std::vector<std::string> target_folders, predictor_folders;
  std::string kind;      // kind of predictors
  std::string data;      // the folder of an exported set, whose programs are measured
  std::string measured;  // a set that keeps the measurements: the next call goes on with it
  std::string log;       // a tuning log, whose records stand for measuring; empty: none
  std::string heads;     // path of the heads to write
  int samples = 3000, each = 40;  // programs in all; programs of a task
  int threads = 1, jobs = 1;
  std::string worker;  // folder of a worker that measures; empty: this machine
  uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> watch = nullptr;
};

// Quality on tasks that a head was not fitted to. top1 is the best time of a task's measured
// programs over the time of the program with the highest score, as a mean over tasks. spread is the
// standard deviation of log2(time) around the scores.
struct HeldOut {
  double top1 = 0, spread = 0;
};
struct AdaptOutcome {
  int tasks = 0;
  int64_t samples = 0;    // programs that worked, in this and earlier calls
  HeldOut before, after;  // without heads, with them
  bool kept = false;      // the heads are better on held-out tasks, and were written
};
// Errors: a set without training programs that run there, a log without records of the target,
// predictors without embeddings.
Expected<AdaptOutcome> adapt_predictors(const AdaptRequest& request);

}  // namespace tw
