// The search for one task of a network: its default schedule first, then round after round.
#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/measure/task_measurer.h"
#include "autotune/network_options.h"
#include "autotune/task_records.h"
#include "autotune/transfer.h"

namespace tw {

struct SearchedTask {
  std::shared_ptr<const Task> task;
  Space space;
  std::unique_ptr<CandidateMeasurer> measurer;
  // The least seconds that the machine's peaks allow products of this type; null: not known
  std::function<double(DType multiplies)> roof = nullptr;
};

// A gain that was measured again in fresh processes
struct ConfirmedGain {
  PairedGain gain;
  double by_default = 0, tuned = 0;  // seconds
  bool stands = false;
};

struct TaskRow {  // facts about a task, for people
  const Task* task = nullptr;
  // Seconds of the default schedule, when the best one was measured in turns with it: at that time.
  // Infinite: unknown, or it fails
  double first = 0;
  double best = 0;                                // infinite: unknown
  std::optional<PairedGain> gain = std::nullopt;  // the best one's, if measured in turns
  int measured = 0, known = 0, illegal = 0;
  // Trials since the last one that gained; exhausted: the space has no more
  int idle = 0;
  bool exhausted = false;
  double roof = 0;                // least seconds that the machine's peaks allow; 0: not known
  double space = 0;               // points
  DType multiplies = DType::f32;  // type that the default schedule multiplies in
  std::string error = {};         // why no tried candidate works; "": one does, or none was tried
  bool from_log = false;          // the best candidate is a known record
};
// Schedules as texts; "": none yet
struct TaskChange {
  Algorithm algorithm = Algorithm::direct;  // algorithm of the best schedule
  std::string first, best;
};

class TaskSearch final : private TaskTrials {
 public:
  // The target, the options and the log must outlive the search. log: null: no records
  TaskSearch(SearchedTask searched, const Target& target, const NetworkOptions& options,
             TuningLog* log);
  TaskSearch(const TaskSearch&) = delete;

  // Sets the clock of a run, and what ends its rounds.
  void follow(const SearchWatch& watch, StopAsked stop);
  // Measures the default schedule alone, so that the network's time is known before any search.
  Expected<TaskRound> first_round();
  bool begun() const { return tuner_ != nullptr; }
  // Sets up the search at the task's first round, so that it can learn from earlier tasks and from
  // notes on kernels of other networks. batch: measurements of a round
  Error begin(std::span<const SimilarTask> similar, const std::vector<RecordNote>& notes,
              int batch);
  Expected<TaskRound> round(int most);

  const Task& task() const { return *task_; }
  const KernelShape& shape() const { return shape_; }
  SimilarTask as_similar() const { return {task_.get(), tuner_.get()}; }
  double first_seconds() const;
  double best_seconds() const;  // infinite: unknown
  // Takes over what measuring again says of the task: the gain, or that the default stays
  void settle(const ConfirmedGain& confirmed) { confirmed_ = confirmed; }
  // The least seconds that the machine's peaks allow; 0: not known
  double roof() const { return roof_seconds_; }
  // Asks for the roof again, as the machine's peaks are known better now.
  void renew_roof() {
    if (roof_ && roof_seconds_ > 0) roof_seconds_ = roof_(multiplies_);
  }
  bool disturbed() const { return disturbed_; }  // the machine was, in one of the measurements
  double measuring_seconds() const { return measuring_seconds_; }
  bool lost() const { return lost_; }  // whoever measures is gone
  // Diagnostics of records that could not be stored
  const std::vector<Diag>& unstored() const { return unstored_; }
  TaskRow row(const TaskState* state) const;  // null: the run has not begun
  TaskChange change() const;
  const std::vector<double>& curve() const;  // best time so far, by trial

 private:
  Expected<Candidate> make(const Point& point) const override;
  Expected<Candidate> adopt(int variant, const Schedule& schedule) const override;
  std::vector<MeasureResult> measure(std::span<const Candidate> candidates) override;
  Expected<Candidate> usual(size_t variant) const;
  void limit_code();
  void pair_best();
  SearchParts parts(std::span<const SimilarTask> similar, int batch) const;
  std::vector<Candidate> beginning(std::span<const SimilarTask> similar,
                                   const std::vector<RecordNote>& notes);
  std::string failure(int tried) const;

  std::shared_ptr<const Task> task_;
  Space space_;
  std::unique_ptr<CandidateMeasurer> measurer_;
  std::function<double(DType)> roof_;
  double roof_seconds_ = 0;
  const Target& target_;
  const NetworkOptions& options_;
  TaskRecords records_;
  KernelShape shape_;
  const SearchWatch* watch_ = nullptr;
  StopAsked stop_;
  // Limit of a candidate's operations, with unrolled loops written out
  int64_t most_code_ = std::numeric_limits<int64_t>::max();
  SearchParts parts_;
  std::unique_ptr<TaskTuner> tuner_;  // present from the task's first round on
  // Default schedules of the variants, as far as they apply
  std::vector<std::string> defaults_;
  std::optional<MeasureResult> by_default_;  // result of the default schedule
  bool has_default_ = false;
  DType multiplies_ = DType::f32;    // type that the default schedule multiplies in
  double first_ = kInfiniteSeconds;  // seconds of the default schedule
  std::optional<PairedGain> gain_;   // the best schedule's, measured in turns with the default one
  std::string paired_;               // schedule with that gain
  std::optional<ConfirmedGain> confirmed_;
  double measuring_seconds_ = 0;
  bool lost_ = false, disturbed_ = false;
  std::vector<Diag> unstored_;
};

}  // namespace tw
