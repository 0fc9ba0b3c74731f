// Jobs in forked processes, one at a time in each: a crash or a job that takes too long costs its
// process and nothing else.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tw::onnx_suite {

struct JobResult {
  bool passed = false;
  double seconds = 0;
  std::string text;  // of a job that passed: what it says of itself; of one that failed: why
};

// work(i) runs in a child and must not be called in this process: it starts what cannot be forked.
// Results in the order of the indices. done is told of each as it comes.
struct WorkerOptions {
  int processes = 1;
  double limit = 60;         // seconds a job
  int jobs_a_process = 200;  // a process that has done so many is replaced
};
std::vector<JobResult> run_jobs(size_t count, const WorkerOptions& options,
                                const std::function<std::function<JobResult(size_t)>()>& make_work,
                                const std::function<void(size_t, const JobResult&)>& done);

}  // namespace tw::onnx_suite
