// Which of a network's tasks is tuned next: Ansor's gradient of the network's time by a task's
// trials.
#pragma once
#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

struct TaskRound {
  int measured = 0;   // new measurements
  int known = 0;      // answered by records
  double best = 0;    // seconds so far; infinite: nothing has worked
  bool done = false;  // there is nothing left to do
};
struct ScheduledTask {
  // group: tasks alike, which should reach the same rate (similar_group)
  std::string name, group;
  double weight = 1;                                   // how often the network runs it
  double flops = 0;                                    // of one run; 0: not compared with others
  std::function<Expected<TaskRound>(int most)> round;  // at most so many new measurements
  // The default schedule alone, before any round; null: the rounds see to it
  std::function<Expected<TaskRound>()> first = nullptr;
};
// Tasks of one family whose operation counts are within about a factor of 1.6.
std::string similar_group(const std::string& family, double flops);

struct SchedulerOptions {
  int trials = 0;            // new measurements in all; 0: no limit
  bool count_known = false;  // what records answer counts as well
  double seconds = 0;        // of the clock; 0: no limit
  double until = 0;          // relative: stop when two laps over the tasks gain less; 0: never
  int batch = 64;            // measurements a round
  double alpha = 0.2, beta = 2, gamma = 0.5;
  int window = 3;       // rounds back
  int warm_rounds = 3;  // a task that has no result after so many is given up
  uint64_t seed = 0;
};

// What a run tells while it works, and asks.
struct SearchWatch {
  std::function<void(size_t task)> begins, ends;  // a round of a task
  // Of the seconds those that belong to what comes behind the search; null: none
  std::function<double()> kept;
};
// When a run that began at `start` has used up its time; infinite: never.
double search_end(const SchedulerOptions& options, double start, const SearchWatch& watch);

enum class StopReason : uint8_t { trials, time, converged, finished, interrupted };
const char* stop_reason_name(StopReason reason);

struct TaskState {
  std::vector<double> history;  // best after every round
  bool dead = false;            // done, failed, or far behind its group
  std::string error;            // why it failed
  int measured = 0, known = 0;
  double best() const;  // infinite: none
};

// It keeps nothing between runs: tasks that answer from records lead it to where it was.
class TaskScheduler {
 public:
  TaskScheduler(std::vector<ScheduledTask> tasks, SchedulerOptions options);

  // First the default schedule of each task, so that the network's time is known, then rounds, the
  // costliest task first. clock: seconds since anything. Error: every task failed.
  Expected<StopReason> run(const std::function<double()>& clock,
                           const std::atomic<bool>* stop = nullptr, const SearchWatch& watch = {});

  const std::vector<TaskState>& states() const { return states_; }
  double network_seconds() const;  // sum of weight * best, of the tasks that have one
  int measured() const { return measured_; }

 private:
  void record_round(size_t task, Expected<TaskRound> round, bool first);
  std::vector<size_t> by_work() const;  // what their operations promise to cost, the most first
  size_t choose();
  double gradient(size_t task) const;
  void leave_hopeless(size_t task);
  bool converged() const;

  std::vector<ScheduledTask> tasks_;
  SchedulerOptions options_;
  std::vector<TaskState> states_;
  // network_seconds() after every round, once each task has a result
  std::vector<double> network_;
  std::mt19937_64 random_;
  int trials() const { return measured_ + (options_.count_known ? known_ : 0); }
  int measured_ = 0, known_ = 0;
};

}  // namespace tw
