// Tunes a network. Each task has a search; the searches learn from each other and from records, and
// a scheduler divides the trials among them.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/task_search.h"

namespace tw {

class NetworkTuner {
 public:
  using Row = TaskRow;
  using Change = TaskChange;

  // log: null: no records, and nothing is kept. The target and the log must outlive the tuner.
  // Errors: records that cannot be read.
  static Expected<std::unique_ptr<NetworkTuner>> create(std::vector<SearchedTask> tasks,
                                                        const Target& target, TuningLog* log,
                                                        const NetworkOptions& options);

  // Begins with the default schedule of every task. A round is cut short when the time is over.
  // Errors: every task failed; records that cannot be read or stored.
  Expected<StopReason> run(SearchWatch& watch);

  size_t task_count() const { return searches_.size(); }
  Row row(size_t task) const;
  Change change(size_t task) const { return searches_[task]->change(); }
  // The best time so far, by trial
  const std::vector<double>& curve(size_t task) const { return searches_[task]->curve(); }
  // Takes over what was measured again, by the tasks' keys.
  void settle(const std::map<std::string, ConfirmedGain>& confirmed);
  double network_seconds() const;  // sum of calls * best, over the tasks that have a time
  // Seconds of the network by the default schedules, over the tasks where these have a time
  double first_seconds() const;
  int measured() const { return scheduler_ ? scheduler_->measured() : 0; }
  // Seconds of measuring in the run so far; searching took the rest
  double measuring_seconds() const;
  size_t reached() const;  // number of tasks that have a time
  // A line for each task where no tried candidate works, with the reason
  std::vector<std::string> failures() const;
  // Number of tasks with a schedule that would replace the default one
  size_t gains() const;
  bool lost() const;  // whoever measures is gone
  // True if the machine was disturbed while it measured.
  bool disturbed() const;
  void renew_roofs();  // after the machine's peaks were measured again

 private:
  explicit NetworkTuner(NetworkOptions options)
      : options_(std::move(options)),
        own_batches_(options_.scheduler.batch <= 0 && !options_.table) {}
  std::vector<SimilarTask> similar(const TaskSearch& search) const;
  Expected<TaskRound> round(TaskSearch& search, int most);
  int batch_of(const TaskSearch& search) const;

  NetworkOptions options_;
  bool own_batches_;  // a kernel with a small share of the time has smaller batches
  std::vector<std::unique_ptr<TaskSearch>> searches_;
  std::unique_ptr<TaskScheduler> scheduler_;
  std::vector<RecordNote> notes_;  // notes on kernels of the target, with a point to start from
};

}  // namespace tw
