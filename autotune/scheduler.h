// Decides which of a network's tasks is tuned next: the one whose time leaves the network most to
// win, as long as its trials still gain.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

struct TaskRound {
  int measured = 0;   // new measurements
  int known = 0;      // results from records
  double best = 0;    // best seconds so far; infinite: no candidate works
  bool done = false;  // nothing is left to do
};
struct ScheduledTask {
  // `group` has similar tasks, which should reach the same rate (similar_group).
  std::string name, group;
  double weight = 1;  // how often the network runs it
  double flops = 0;   // operations of one run; 0: not compared with others
  std::function<Expected<TaskRound>(int most)> round;  // makes at most `most` new measurements
  // Measures the default schedule alone, before any round; null: the rounds do it
  std::function<Expected<TaskRound>()> first = nullptr;
  // The least seconds that the machine's peaks allow a run, 0: not known; called after a result
  std::function<double()> roof = nullptr;
};
// Groups tasks of one family with operation counts within a factor of about 1.6.
std::string similar_group(const std::string& family, double flops);

struct SchedulerOptions {
  int trials = 0;            // new measurements in all; 0: no limit
  bool count_known = false;  // results from records count as well
  double seconds = 0;        // time limit of the clock; 0: no limit
  double until = 0;  // relative gain of two laps over the tasks below which the run stops; 0: never
  int batch = 64;    // measurements in a round
  double gain = 0.01;   // smallest gain of a round, relative to the task's time
  int warm_rounds = 3;  // a task without a result after this many rounds is given up
};

// Whoever follows a run: its clock, what ends it, and who is told of its progress
class SearchWatch {
 public:
  virtual ~SearchWatch() = default;
  virtual double now() const = 0;                       // seconds since any moment; from any thread
  virtual bool asked_to_stop() const { return false; }  // from any thread
  virtual double kept() const { return 0; }  // seconds to reserve for the work behind the search
  virtual void task_begins(size_t) {}        // a round of a task begins or ends
  virtual void task_ends(size_t) {}
};
// The clock's time at which a run that began at `start` must end; infinite: never
double search_end(const SchedulerOptions& options, double start, const SearchWatch& watch);

enum class StopReason : uint8_t { trials, time, converged, finished, interrupted };
const char* stop_reason_name(StopReason reason);

struct TaskState {
  std::vector<double> history;  // best time after every round
  bool dead = false;            // done or failed
  std::string error;
  int measured = 0, known = 0;
  int idle = 0;         // trials since the last round that gained
  double best() const;  // infinite: none
  int trials() const { return measured + known; }
};

// Keeps nothing between runs: tasks that answer from records lead it back to its old state.
class TaskScheduler {
 public:
  TaskScheduler(std::vector<ScheduledTask> tasks, SchedulerOptions options);

  // Begins with the default schedule of each task, the costliest task first, so that the network's
  // time is known. Then come rounds. Error: every task failed.
  Expected<StopReason> run(SearchWatch& watch);

  const std::vector<TaskState>& states() const { return states_; }
  double network_seconds() const;  // sum of weight * best, over the tasks that have one
  int measured() const { return measured_; }

 private:
  void record_round(size_t task, Expected<TaskRound> round, bool first);
  std::vector<size_t> by_work() const;  // by expected cost from their operations, the largest first
  size_t choose();
  double left(size_t task) const;
  double claim(size_t task) const;
  bool is_due(size_t task) const;
  bool converged() const;

  std::vector<ScheduledTask> tasks_;
  SchedulerOptions options_;
  std::vector<TaskState> states_;
  // network_seconds() after every round, once each task has a result
  std::vector<double> network_;
  int trials() const { return measured_ + (options_.count_known ? known_ : 0); }
  int measured_ = 0, known_ = 0;
};

}  // namespace tw
