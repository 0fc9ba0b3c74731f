// The loop for one task: proposals of an explorer are built, measured, and told to model and
// explorer, batch by batch.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "autotune/measure.h"
#include "autotune/search.h"

namespace tw {

struct TuneHooks {
  // From several threads at once
  MakeCandidate make;
  // Results of the candidates, in order; fewer of them when it was interrupted.
  std::function<std::vector<MeasureResult>(std::span<const Candidate>)> measure;
  // Of every new measurement, at once
  std::function<void(const Candidate&, const MeasureResult&)> record = nullptr;
  // A candidate of a schedule that some other search found. Null: such ones are of no use.
  std::function<Expected<Candidate>(int variant, const Schedule& schedule)> adopt = nullptr;
};

struct TuneOptions {
  int batch = 64;
  int patience = 0;     // trials without a gain after which the task is done; 0: never
  double gain = 0.005;  // of the best time, that counts as one
  // Of points in a row that are illegal, and that mean schedules which were asked for before: then
  // the space counts as searched.
  int most_illegal = 4096, most_repeated = 256;
  int jobs = 1;  // threads that build candidates
};

// A measurement of this task that is there already.
struct KnownResult {
  int variant = 0;
  std::string schedule;  // text
  MeasureResult result;
};

struct TuneStep {
  int measured = 0;  // new measurements
  int known = 0;     // answered by results that were there
};

// Resuming: a search is deterministic, so it is run again with the known results as answers and
// goes on where they end. Known results that it does not ask for (of another seed or method) teach
// the model and count for the best when the first new measurement is due.
class TaskTuner {
 public:
  // name: for errors. model: may be null; also what the explorer asks, so that both see the same
  // fits. All references must outlive the tuner.
  TaskTuner(std::string name, const Space& space, Explorer& explorer, CostModel* model,
            TuneHooks hooks, TuneOptions options);

  void know(std::vector<KnownResult> results);
  // A part of the first batch: the default schedule, the best ones of similar tasks. first: what
  // the first of them took, where that was measured before.
  void begin_with(std::vector<Candidate> candidates,
                  const std::optional<MeasureResult>& first = std::nullopt);

  // One batch, or as much of it as `most` new measurements allow; the rest is done in the next
  // step, and so is what `stop` cuts off. Error: the space has no legal point among those that were
  // tried.
  Expected<TuneStep> step(int most, const StopAsked& stop = nullptr);
  // Steps until `most` new measurements are made, or nothing is left to do.
  Expected<TuneStep> run(int most, const StopAsked& stop = nullptr);

  // The space is exhausted, or patience is at its end
  bool done() const { return done_; }
  double best_seconds() const { return best_seconds_; }  // infinite: nothing has worked
  // Of the first one that it began with; infinite: none, or not yet
  double first_seconds() const { return first_seconds_; }
  // Of best_seconds(), where that is finite
  const Candidate& best() const { return best_; }
  // It is a known result
  bool best_is_known() const { return best_is_known_; }
  const std::vector<double>& curve() const { return curve_; }  // best so far, by trial
  // Known ones that were asked for too
  int trials() const { return static_cast<int>(curve_.size()); }
  int illegal() const { return illegal_; }  // points that were not measured
  // What the model learns from, without kernels: measured, known, and adopted.
  std::vector<std::pair<Candidate, double>> measured() const;

 private:
  struct Entry {
    Candidate candidate;
    double seconds = 0;
    bool answered = false, first = false;  // first: of those that the search began with
  };
  using Key = std::pair<int, std::string>;
  struct Known {
    MeasureResult result;
    bool used = false;
  };
  static Key key_of(const Candidate& candidate) {
    return {candidate.variant, print(candidate.schedule)};
  }

  // The next batch
  Error fill(const StopAsked& stop);
  void build(const std::vector<Point>& points);
  int answer_known();
  void adopt_unused();
  Expected<int> measure(int most);
  void record_result(Entry& entry, const MeasureResult& result, bool known);
  void note_best(const Candidate& candidate, double seconds, bool known);
  void finish_batch();

  std::string name_;
  const Space& space_;
  Explorer& explorer_;
  CostModel* model_;
  TuneHooks hooks_;
  TuneOptions options_;
  std::map<Key, Known> known_;
  std::vector<Entry> batch_;
  std::vector<Point> illegal_points_;  // of the batch
  std::vector<Candidate> seen_;        // what the model learns from
  std::vector<double> seen_seconds_;
  size_t fitted_ = 0;  // of them, at the last fit
  Candidate best_;
  double best_seconds_, first_seconds_;
  std::vector<double> curve_;
  std::set<Key> asked_;  // two points may mean one schedule
  int illegal_ = 0, last_gain_ = 0;
  int illegal_in_a_row_ = 0, repeated_in_a_row_ = 0;
  std::string illegal_example_;
  // filled_: the batch has its proposals
  bool done_ = false, adopted_ = false, filled_ = false, best_is_known_ = false;
};

}  // namespace tw
