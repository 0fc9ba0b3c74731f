#include "autotune/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autotune/median.h"
#include "support/parallel.h"

namespace tw {
namespace {
bool is_set(const StopAsked& stop) { return stop && stop(); }
}  // namespace

TaskTuner::TaskTuner(std::string name, const Space& space, Explorer& explorer, CostModel* model,
                     TaskTrials& trials, TuneOptions options)
    : name_(std::move(name)),
      space_(space),
      explorer_(explorer),
      model_(model),
      trials_(trials),
      options_(options),
      best_seconds_(kInfiniteSeconds),
      first_seconds_(kInfiniteSeconds) {}

void TaskTuner::know(std::vector<KnownResult> results) {
  for (KnownResult& r : results) {
    Known& known = known_[{r.variant, std::move(r.schedule)}];
    // If two results are for one schedule, a result that worked wins, and then the faster one.
    if (known.result.seconds.empty() || seconds_of(r.result) < seconds_of(known.result)) {
      known.result = std::move(r.result);
      known.rejected = r.rejected;
    }
  }
}

void TaskTuner::begin_with(std::vector<Candidate> candidates,
                           const std::optional<MeasureResult>& first) {
  for (Candidate& c : candidates)
    if (asked_.insert(key_of(c)).second) batch_.push_back({std::move(c)});
  filled_ = false;
  if (batch_.empty()) return;
  batch_.front().first = true;
  if (!first) return;
  const Known& known = known_[key_of(batch_.front().candidate)] = {*first, true};
  record_result(batch_.front(), known, true);
}

void TaskTuner::build(const std::vector<Point>& points) {
  std::vector<std::optional<Candidate>> built(points.size());
  std::vector<std::string> errors(points.size());
  const auto make = [&](size_t i) -> Error {
    if (Expected<Candidate> candidate = trials_.make(points[i])) built[i] = std::move(*candidate);
    else errors[i] = error_text(candidate.takeError());
    return Error::success();
  };
  llvm::cantFail(parallel_for(options_.jobs, points.size(), make));
  for (size_t i = 0; i < points.size(); ++i) {
    // The batch may already have it from the beginning.
    const auto same = [&](const Entry& e) { return e.candidate.point == points[i]; };
    if (built[i] && std::any_of(batch_.begin(), batch_.end(), same)) continue;
    if (built[i] && !asked_.insert(key_of(*built[i])).second) {
      ++repeated_in_a_row_;
      continue;
    }
    if (built[i]) {
      batch_.push_back({std::move(*built[i])});
      illegal_in_a_row_ = repeated_in_a_row_ = 0;
      continue;
    }
    illegal_points_.push_back(points[i]);
    ++illegal_;
    ++illegal_in_a_row_;
    if (illegal_example_.empty()) illegal_example_ = space_.print(points[i]) + ": " + errors[i];
  }
}

// Illegal points and repeated schedules cost no measurement, so the batch is filled up while less
// than half of it can be measured.
Error TaskTuner::fill(const StopAsked& stop) {
  int ask = options_.batch - static_cast<int>(batch_.size());
  while (static_cast<int>(batch_.size()) * 2 < options_.batch &&
         illegal_in_a_row_ < options_.most_illegal && repeated_in_a_row_ < options_.most_repeated) {
    if (is_set(stop)) return Error::success();
    const std::vector<Point> points = explorer_.propose(ask);
    if (points.empty()) break;
    build(points);
    // The explorer must learn of illegal points before it proposes again.
    if (batch_.empty()) finish_batch();
    ask = options_.batch - static_cast<int>(batch_.size());
  }
  filled_ = true;
  if (!batch_.empty()) return Error::success();
  done_ = exhausted_ = true;
  if (trials() > 0) return Error::success();
  Diag d{DiagCode::illegal_schedule,
         name_ + ": none of the " + std::to_string(illegal_) +
             " points tried is legal; its space has " +
             llvm::formatv("{0:f0}", space_.size()).str(),
         {},
         {}};
  if (!illegal_example_.empty()) d.notes.push_back("the first of them: " + illegal_example_);
  return make_error(std::move(d));
}

void TaskTuner::note_best(const Candidate& candidate, double seconds, bool known) {
  if (seconds >= best_seconds_) return;
  if (!(seconds > best_seconds_ * (1 - options_.gain))) last_gain_ = trials();
  best_seconds_ = seconds;
  best_ = candidate;
  best_is_known_ = known;
}

void TaskTuner::record_result(Entry& entry, const Known& result, bool known) {
  entry.seconds = seconds_of(result.result);
  entry.answered = true;
  if (entry.first) first_seconds_ = entry.seconds;
  if (!result.rejected) note_best(entry.candidate, entry.seconds, known);
  curve_.push_back(best_seconds_);
}

int TaskTuner::answer_known() {
  int count = 0;
  if (known_.empty()) return 0;
  for (Entry& entry : batch_) {
    if (entry.answered) continue;
    const auto known = known_.find(key_of(entry.candidate));
    if (known == known_.end()) continue;
    known->second.used = true;
    record_result(entry, known->second, true);
    ++count;
  }
  return count;
}

void TaskTuner::adopt_unused() {
  if (std::exchange(adopted_, true)) return;
  for (const auto& [key, known] : known_) {
    if (known.used) continue;
    Expected<Schedule> schedule = parse_schedule(key.second);
    Expected<Candidate> candidate = schedule ? trials_.adopt(key.first, *schedule)
                                             : Expected<Candidate>(schedule.takeError());
    if (!candidate) {  // a schedule of another version of the kernel is ignored
      llvm::consumeError(candidate.takeError());
      continue;
    }
    candidate->point = {-1, {}};
    const double seconds = seconds_of(known.result);
    if (!known.rejected) note_best(*candidate, seconds, true);
    seen_.push_back(std::move(*candidate));
    seen_seconds_.push_back(seconds);
  }
}

Expected<int> TaskTuner::measure(int most) {
  std::vector<size_t> chosen;
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < batch_.size() && static_cast<int>(chosen.size()) < most; ++i) {
    if (batch_[i].answered) continue;
    chosen.push_back(i);
    candidates.push_back(batch_[i].candidate);
  }
  if (chosen.empty()) return 0;
  adopt_unused();
  const std::vector<MeasureResult> results = trials_.measure(candidates);
  TW_CHECK(results.size() <= chosen.size(), "{0}: more results than candidates", name_);
  for (size_t i = 0; i < results.size(); ++i) {
    const Known& result = known_[key_of(candidates[i])] = {results[i], true};
    record_result(batch_[chosen[i]], result, false);
  }
  return static_cast<int>(results.size());
}

std::vector<std::pair<Candidate, double>> TaskTuner::measured() const {
  std::vector<std::pair<Candidate, double>> out;
  for (size_t i = 0; i < seen_.size(); ++i)
    if (!seen_[i].schedule.steps.empty())
      out.push_back({Candidate{seen_[i].point, seen_[i].schedule, nullptr, seen_[i].variant},
                     seen_seconds_[i]});
  return out;
}

// Teaches the batch to the model first, then to the explorer, which asks the model.
void TaskTuner::finish_batch() {
  std::vector<Point> points = std::move(illegal_points_);
  std::vector<double> seconds(points.size(), kInfiniteSeconds);
  illegal_points_.clear();
  for (const Point& point : points) {
    if (!model_ || !model_->knows(point)) continue;  // the model has no kernel to learn from
    seen_.push_back({point, {}, nullptr, 0});
    seen_seconds_.push_back(kInfiniteSeconds);
  }
  for (Entry& entry : batch_) {
    if (in_space(entry.candidate.point)) {
      points.push_back(entry.candidate.point);
      seconds.push_back(entry.seconds);
    }
    seen_.push_back(std::move(entry.candidate));
    seen_seconds_.push_back(entry.seconds);
  }
  batch_.clear();
  filled_ = false;
  if (model_ && seen_.size() > fitted_) {
    fitted_ = seen_.size();
    model_->fit(seen_, seen_seconds_);
    for (Candidate& c : seen_)
      if (model_->knows(c.point)) c.run.reset();
  }
  explorer_.tell(points, seconds);
  if (options_.patience > 0 && trials() - last_gain_ >= options_.patience) done_ = true;
}

Expected<TuneStep> TaskTuner::step(int most, const StopAsked& stop) {
  TuneStep out;
  if (done_ || is_set(stop)) return out;
  if (!filled_) TW_TRY(fill(stop));
  const auto answered = [](const Entry& e) { return e.answered; };
  if (filled_ && !done_ && std::ranges::all_of(batch_, answered)) {
    finish_batch();  // the beginning filled a small batch and asks for nothing new
    TW_TRY(fill(stop));
  }
  if (done_ || !filled_) return out;
  out.known = answer_known();
  TW_ASSIGN(out.measured, measure(most));
  out.known += answer_known();
  if (std::ranges::all_of(batch_, answered)) finish_batch();
  return out;
}

Expected<TuneStep> TaskTuner::run(int most, const StopAsked& stop) {
  TuneStep sum;
  while (sum.measured < most && !done_ && !is_set(stop)) {
    TW_ASSIGN(const TuneStep one, step(most - sum.measured, stop));
    sum.measured += one.measured;
    sum.known += one.known;
    if (one.measured + one.known == 0) break;
  }
  return sum;
}

}  // namespace tw
