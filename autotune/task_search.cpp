#include "autotune/task_search.h"

#include <algorithm>
#include <cmath>

#include "autotune/candidate.h"
#include "autotune/median.h"
#include "ir/kernel/code_size.h"
#include "ir/kernel/work.h"
#include "kernels/default_schedule.h"

namespace tw {
namespace {

constexpr size_t kNeighbours = 2;  // similar tasks whose best schedules are tried first

// A seed for each task, the same in every network
uint64_t seed_of(uint64_t seed, const std::string& key) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

TaskSearch::TaskSearch(SearchedTask searched, const Target& target, const NetworkOptions& options,
                       TuningLog* log)
    : task_(std::move(searched.task)),
      space_(std::move(searched.space)),
      measurer_(std::move(searched.measurer)),
      roof_(std::move(searched.roof)),
      target_(target),
      options_(options),
      records_(log, *task_, space_, {task_->key, target_key(target), options.threads}),
      shape_(shape_of(task_->variants.front().lowered)) {}

void TaskSearch::follow(const SearchWatch& watch, StopAsked stop) {
  watch_ = &watch;
  stop_ = std::move(stop);
}

Expected<Candidate> TaskSearch::make(const Point& point) const {
  TW_ASSIGN(Candidate candidate, candidate_of(*task_, target_, space_, point));
  TW_TRY(check_code_size(candidate, target_, most_code_));
  return candidate;
}

Expected<Candidate> TaskSearch::adopt(int variant, const Schedule& schedule) const {
  if (options_.table) return TaskTrials::adopt(variant, schedule);
  return candidate_of(*task_, target_, variant, schedule);
}

std::vector<MeasureResult> TaskSearch::measure(std::span<const Candidate> candidates) {
  const double begin = watch_->now();
  std::vector<MeasureResult> results = measurer_->measure(candidates, stop_);
  measuring_seconds_ += watch_->now() - begin;
  for (size_t i = 0; i < results.size(); ++i) {
    lost_ = lost_ || results[i].lost;
    disturbed_ = disturbed_ || results[i].contended;
    const auto variant = static_cast<size_t>(candidates[i].variant);
    const bool by_default = variant < defaults_.size() &&
                            defaults_[variant] == print(candidates[i].schedule);
    if (Error e = records_.add(candidates[i], results[i], by_default))
      for (Diag& d : take_diags(std::move(e))) unstored_.push_back(std::move(d));
  }
  return results;
}

// The candidate with the default schedule of a variant. For the first variant the space may have a
// point for it.
Expected<Candidate> TaskSearch::usual(size_t variant) const {
  if (const std::optional<Point> point = space_.default_point(); point && variant == 0)
    return make(*point);
  TW_ASSIGN(Schedule schedule, default_schedule(task_->variants[variant].lowered, target_));
  return candidate_of(*task_, target_, static_cast<int>(variant), std::move(schedule));
}

// Limits unrolled code by the default schedules of all variants.
void TaskSearch::limit_code() {
  if (!target_.driver.empty()) return;
  int64_t most = kLeastOperations;
  for (size_t v = 0; v < task_->variants.size(); ++v) {
    if (Expected<Candidate> candidate = usual(v))
      most = std::max(most, most_operations(candidate->run->kernel, target_.lanes(4)));
    else llvm::consumeError(candidate.takeError());  // the error is reported when it is measured
  }
  most_code_ = most;
}

// The candidates to begin with: the default schedule; the other algorithms' default schedules, as
// alternatives; in a space without a default, the usual points of its sketches; and the best
// candidates of similar tasks, where they are legal here.
std::vector<Candidate> TaskSearch::beginning(std::span<const SimilarTask> similar,
                                             const std::vector<RecordNote>& notes) {
  std::vector<Candidate> out;
  const auto add = [&](Expected<Candidate> candidate) {
    if (candidate) out.push_back(std::move(*candidate));
    else llvm::consumeError(candidate.takeError());  // only a start, so errors do not matter
  };
  defaults_.resize(task_->variants.size());
  for (size_t v = 0; v < task_->variants.size(); ++v) {
    const size_t before = out.size();
    add(usual(v));
    defaults_[v] = out.size() > before ? print(out.back().schedule) : "";
  }
  has_default_ = !defaults_.front().empty();
  if (!space_.default_point())
    for (const Point& point : space_.starts()) add(make(point));
  if (!options_.transfer || !options_.tuner->starts_near) return out;
  for (const SimilarTask& other : similar.first(std::min(similar.size(), kNeighbours)))
    add(adopt(other.tuner->best().variant, other.tuner->best().schedule));
  // Similar tasks of other networks
  for (const RecordNote& note : nearest_notes(notes, shape_, kNeighbours))
    if (const std::optional<Point> point = space_.parse(note.point)) add(make(*point));
  return out;
}

Expected<TaskRound> TaskSearch::first_round() {
  TW_TRY(records_.keep_texts());
  Expected<Candidate> candidate = usual(0);
  if (!candidate) {  // rounds begin without a default schedule
    llvm::consumeError(candidate.takeError());
    return TaskRound{0, 0, kInfiniteSeconds, false};
  }
  multiplies_ = multiplied_type(candidate->run->kernel);
  if (roof_) roof_seconds_ = roof_(multiplies_);
  const std::string schedule = print(candidate->schedule);
  defaults_ = {schedule};
  TW_ASSIGN(const std::vector<KnownResult> known, records_.known());
  const auto record = std::ranges::find_if(known, [&](const KnownResult& r) {
    return r.variant == 0 && r.schedule == schedule && !r.rejected;
  });
  const bool is_known = record != known.end();
  if (is_known) {
    by_default_ = record->result;
  } else {
    const std::vector<MeasureResult> results = measure({&*candidate, 1});
    if (results.empty()) return TaskRound{0, 0, kInfiniteSeconds, false};  // stopped
    by_default_ = results.front();
    if (!unstored_.empty()) return make_error(unstored_);
  }
  first_ = seconds_of(*by_default_);
  return TaskRound{is_known ? 0 : 1, is_known ? 1 : 0, first_, false};
}

// Scoring points takes seconds when their kernels are built for it. Once the time is over, no more
// of them are made.
SearchParts TaskSearch::parts(std::span<const SimilarTask> similar, int batch) const {
  const auto unless_stopped = [this](const Point& point) -> Expected<Candidate> {
    if (stop_ && stop_()) return make_error(DiagCode::limit, "the search ends");
    return make(point);
  };
  return options_.tuner->parts({*task_, space_, target_, options_,
                                seed_of(options_.seed, task_->key), batch, unless_stopped,
                                similar});
}

Error TaskSearch::begin(std::span<const SimilarTask> similar, const std::vector<RecordNote>& notes,
                        int batch) {
  limit_code();
  parts_ = parts(similar, batch);
  TuneOptions tune;
  tune.batch = batch, tune.patience = options_.patience, tune.jobs = options_.jobs;
  if (options_.tuner->exhaustive) tune.most_repeated = std::numeric_limits<int>::max();
  TW_ASSIGN(std::vector<KnownResult> known, records_.known());
  TaskTrials& trials = *this;
  tuner_ = std::make_unique<TaskTuner>(task_->name, space_, *parts_.explorer, parts_.model.get(),
                                       trials, tune);
  tuner_->know(std::move(known));
  if (!options_.table) tuner_->begin_with(beginning(similar, notes), by_default_);
  return Error::success();
}

Expected<TaskRound> TaskSearch::round(int most) {
  TW_ASSIGN(const TuneStep step, tuner_->step(most, stop_));
  if (has_default_) first_ = tuner_->first_seconds();
  if (step.measured > 0) pair_best();
  if (!unstored_.empty()) return make_error(unstored_);
  return TaskRound{step.measured, step.known, tuner_->best_seconds(), tuner_->done()};
}

// Measures a new best in turns with the default schedule: the time that the default once had says
// little on a machine that has become faster or slower since.
void TaskSearch::pair_best() {
  if (options_.table || !has_default_ || !is_gain(tuner_->best_seconds(), first_)) return;
  const Candidate& best = tuner_->best();
  const std::string text = std::to_string(best.variant) + print(best.schedule);
  if (text == paired_) return;
  gain_.reset();
  if (!best.run || (stop_ && stop_())) return;
  Expected<Candidate> by_default = usual(0);
  if (!by_default) return llvm::consumeError(by_default.takeError());  // reported when measured
  const double begin = watch_->now();
  gain_ = measurer_->in_turns(*by_default, best);
  paired_ = text;
  measuring_seconds_ += watch_->now() - begin;
}

double TaskSearch::best_seconds() const {
  if (confirmed_) return confirmed_->stands ? confirmed_->tuned : confirmed_->by_default;
  const double best = tuner_ ? tuner_->best_seconds() : first_;
  return gain_ ? std::min(best, gain_->ratio * best) : best;  // the default stays if it is faster
}

double TaskSearch::first_seconds() const {
  if (confirmed_) return confirmed_->by_default;
  return gain_ ? gain_->ratio * tuner_->best_seconds() : first_;
}

// A text for candidates without a time
std::string TaskSearch::failure(int tried) const {
  std::string text = task_->name + ": no candidate of " + std::to_string(tried) + " works";
  if (!by_default_ || by_default_->status == Status::ok) return text;
  text += std::string("; the default schedule: ") + status_name(by_default_->status);
  return by_default_->error.empty() ? text : text + ", " + by_default_->error;
}

TaskRow TaskSearch::row(const TaskState* state) const {
  TaskRow row{.task = task_.get(),
              .first = first_seconds(),
              .best = best_seconds(),
              .roof = roof(),
              .space = space_.size(),
              .multiplies = multiplies_};
  if (tuner_) {
    row.illegal = tuner_->illegal();
    row.from_log = tuner_->best_is_known(), row.exhausted = tuner_->exhausted();
    row.gain = confirmed_ ? std::optional(confirmed_->gain) : gain_;
  }
  if (state) {
    row.measured = state->measured, row.known = state->known;
    row.idle = state->idle, row.error = state->error;
  }
  const int tried = row.measured + row.known;
  if (tried > 0 && !std::isfinite(row.best)) row.error = failure(tried);
  return row;
}

TaskChange TaskSearch::change() const {
  TaskChange change;
  if (!defaults_.empty()) change.first = defaults_.front();
  if (!tuner_ && std::isfinite(first_)) change.best = change.first;  // nothing else was tried
  if (!tuner_ || !std::isfinite(tuner_->best_seconds())) return change;
  const Candidate& best = tuner_->best();
  change.algorithm = task_->variants[static_cast<size_t>(best.variant)].algorithm;
  change.best = print(best.schedule);
  return change;
}

const std::vector<double>& TaskSearch::curve() const {
  static const std::vector<double> none;
  return tuner_ ? tuner_->curve() : none;
}

}  // namespace tw
