// The loop for one task. Proposals of an explorer are built and measured, and model and explorer
// learn the results, batch by batch.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "autotune/measure.h"
#include "autotune/search.h"

namespace tw {

// A task's candidates and their times, for the loop
class TaskTrials {
 public:
  virtual ~TaskTrials() = default;
  // Makes the candidate of a point; called from several threads at once. Error: it is illegal.
  virtual Expected<Candidate> make(const Point& point) const = 0;
  // Makes a candidate from a schedule that another search found. Errors: the schedule is ignored.
  virtual Expected<Candidate> adopt(int, const Schedule&) const {
    return make_error(DiagCode::unsupported, "schedules of other searches are not taken");
  }
  // Measures the candidates and keeps the results, which it returns in order; fewer when it was
  // interrupted.
  virtual std::vector<MeasureResult> measure(std::span<const Candidate> candidates) = 0;
};

struct TuneOptions {
  int batch = 64;
  int patience = 0;     // trials without a gain before the task is done; 0: never
  double gain = 0.005;  // smallest gain, relative to the best time
  // Limits of successive points that are illegal, or that repeat a schedule. At a limit the space
  // counts as searched.
  int most_illegal = 4096, most_repeated = 256;
  int jobs = 1;  // threads that build candidates
};

// A measurement of this task from before
struct KnownResult {
  int variant = 0;
  std::string schedule;  // text
  MeasureResult result;
  bool rejected = false;  // teaches the model, and is never the best
};

struct TuneStep {
  int measured = 0;  // new measurements
  int known = 0;     // answers from known results
};

// A search resumes by determinism: it runs again with the known results as answers, and goes on
// where they end. Known results that it does not ask for (from another seed or method) teach the
// model and count for the best when the first new measurement is due.
class TaskTuner {
 public:
  // Errors contain `name`. `model` may be null; the explorer must ask the same model, so that both
  // see the same fits. All references must outlive the tuner.
  TaskTuner(std::string name, const Space& space, Explorer& explorer, CostModel* model,
            TaskTrials& trials, TuneOptions options);

  void know(std::vector<KnownResult> results);
  // Sets a part of the first batch: the default schedule, and the best candidates of similar tasks.
  // `first` is the result of the first candidate, if it is known.
  void begin_with(std::vector<Candidate> candidates,
                  const std::optional<MeasureResult>& first = std::nullopt);

  // Runs one batch, or as much of it as `most` new measurements allow. The next step does the rest,
  // also when `stop` cut the batch short. Error: no tried point of the space is legal.
  Expected<TuneStep> step(int most, const StopAsked& stop = nullptr);
  // Runs steps until `most` new measurements are made, or nothing is left to do.
  Expected<TuneStep> run(int most, const StopAsked& stop = nullptr);

  // True when the space is exhausted or the patience at its end
  bool done() const { return done_; }
  bool exhausted() const { return exhausted_; }          // nothing of the space is left
  double best_seconds() const { return best_seconds_; }  // infinite: no candidate works
  // Seconds of the first candidate that it began with; infinite: none, or not yet
  double first_seconds() const { return first_seconds_; }
  // The candidate of best_seconds(), if that is finite
  const Candidate& best() const { return best_; }
  bool best_is_known() const { return best_is_known_; }
  const std::vector<double>& curve() const { return curve_; }  // best time so far, by trial
  // Number of trials; known results that were asked for count too
  int trials() const { return static_cast<int>(curve_.size()); }
  int illegal() const { return illegal_; }  // points that were not measured
  // The candidates that the model learns from, without kernels: measured, known, and adopted ones
  std::vector<std::pair<Candidate, double>> measured() const;

 private:
  struct Entry {
    Candidate candidate;
    double seconds = 0;
    bool answered = false, first = false;  // first: the first candidate that the search began with
  };
  using Key = std::pair<int, std::string>;
  struct Known {
    MeasureResult result;
    bool used = false, rejected = false;
  };
  static Key key_of(const Candidate& candidate) {
    return {candidate.variant, print(candidate.schedule)};
  }

  Error fill(const StopAsked& stop);
  void build(const std::vector<Point>& points);
  int answer_known();
  void adopt_unused();
  Expected<int> measure(int most);
  void record_result(Entry& entry, const Known& result, bool known);
  void note_best(const Candidate& candidate, double seconds, bool known);
  void finish_batch();

  std::string name_;
  const Space& space_;
  Explorer& explorer_;
  CostModel* model_;
  TaskTrials& trials_;
  TuneOptions options_;
  std::map<Key, Known> known_;
  std::vector<Entry> batch_;
  std::vector<Point> illegal_points_;
  std::vector<Candidate> seen_;  // candidates that the model learns from
  std::vector<double> seen_seconds_;
  size_t fitted_ = 0;  // number of them at the last fit
  Candidate best_;
  double best_seconds_, first_seconds_;
  std::vector<double> curve_;
  std::set<Key> asked_;  // schedules of the search; two points may mean one schedule
  int illegal_ = 0, last_gain_ = 0;
  int illegal_in_a_row_ = 0, repeated_in_a_row_ = 0;
  std::string illegal_example_;
  // filled_: the batch has its proposals
  bool done_ = false, adopted_ = false, filled_ = false, best_is_known_ = false, exhausted_ = false;
};

}  // namespace tw
