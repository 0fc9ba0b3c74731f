// Jobs in forked processes, one at a time in each. A crash, or a job that takes too long, costs its
// process and nothing else.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tw::onnx_suite {

struct JobResult {
  bool passed = false;
  double seconds = 0;
  std::string text;  // passed: remarks; failed: the reason
};

// make_work() and the function that it returns run in children alone, as they may start threads,
// which a fork does not copy. That function runs the job of an index. Results come in the order of
// the jobs; done gets each one as soon as it comes.
struct WorkerOptions {
  int processes = 1;
  double limit = 60;         // seconds a job
  int jobs_a_process = 200;  // then a new process takes its place
};
std::vector<JobResult> run_jobs(size_t count, const WorkerOptions& options,
                                const std::function<std::function<JobResult(size_t)>()>& make_work,
                                const std::function<void(size_t, const JobResult&)>& done);

}  // namespace tw::onnx_suite
