#include "autotune/scheduler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "autotune/record.h"

namespace tw {
namespace {
constexpr double kGolden = 1.618;
// Trials without a gain that halve a task's claim; each further doubling halves it again.
constexpr double kHalvingTrials = 4;
constexpr double kGroupRoom = 2;  // a task may become this much faster than the best of its group
// A task is due while it has a noticeable share of the network's time, could be twice as fast, and
// has had fewer than this share of its equal part of the trials.
constexpr double kNoticeable = 0.01, kFarLeft = 0.5, kLeastPart = 0.25;
}  // namespace

std::string similar_group(const std::string& family, double flops) {
  return family + "/" +
         std::to_string(static_cast<int>(std::log(std::max(flops, 1.0)) / std::log(kGolden)));
}

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::trials: return "trials";
    case StopReason::time: return "time";
    case StopReason::converged: return "converged";
    case StopReason::finished: return "finished";
    case StopReason::interrupted: return "interrupted";
  }
  TW_UNREACHABLE("a stop reason");
}

double search_end(const SchedulerOptions& options, double start, const SearchWatch& watch) {
  if (options.seconds <= 0) return kInfiniteSeconds;
  return start + options.seconds - watch.kept();
}

double TaskState::best() const { return history.empty() ? kInfiniteSeconds : history.back(); }

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks, SchedulerOptions options)
    : tasks_(std::move(tasks)), options_(options), states_(tasks_.size()) {}

double TaskScheduler::network_seconds() const {
  double sum = 0;
  for (size_t i = 0; i < tasks_.size(); ++i)
    if (std::isfinite(states_[i].best())) sum += tasks_[i].weight * states_[i].best();
  return sum;
}

// Seconds of a run that could be won: down to the roof. Without one it is what a task of the same
// group has reached, with some room.
double TaskScheduler::left(size_t task) const {
  const double best = states_[task].best();
  double least = tasks_[task].roof ? tasks_[task].roof() : 0;
  if (least <= 0 && tasks_[task].flops > 0) {
    double rate = 0;
    for (size_t i = 0; i < tasks_.size(); ++i)
      if (tasks_[i].group == tasks_[task].group && std::isfinite(states_[i].best()))
        rate = std::max(rate, tasks_[i].flops / states_[i].best());
    least = tasks_[task].flops / (kGroupRoom * rate);
  }
  return std::max(0.0, best - least);
}

// A task's claim on the next round: what the network could win by it, less the longer its trials
// gain nothing.
double TaskScheduler::claim(size_t task) const {
  return tasks_[task].weight * left(task) / (1 + states_[task].idle / kHalvingTrials);
}

bool TaskScheduler::is_due(size_t task) const {
  const double best = states_[task].best();
  return tasks_[task].weight * best >= kNoticeable * network_seconds() &&
         left(task) >= kFarLeft * best &&
         states_[task].trials() * static_cast<double>(tasks_.size()) <
             kLeastPart * (measured_ + known_);
}

// The due task with the fewest trials; if none is due, the one with the largest claim. Of equal
// claims the one with fewer trials wins.
size_t TaskScheduler::choose() {
  std::optional<size_t> due, most;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (states_[i].dead) continue;
    if (is_due(i) && (!due || states_[i].trials() < states_[*due].trials())) due = i;
    if (!most || claim(i) > claim(*most) ||
        (claim(i) == claim(*most) && states_[i].trials() < states_[*most].trials()))
      most = i;
  }
  return due ? *due : *most;
}

void TaskScheduler::record_round(size_t task, Expected<TaskRound> round, bool first) {
  TaskState& state = states_[task];
  if (!round) {
    state.dead = true;
    std::vector<Diag> diags = take_diags(round.takeError());
    state.error = diags.empty() ? "failed" : to_string(diags.front());
    return;
  }
  state.measured += round->measured;
  state.known += round->known;
  measured_ += round->measured;
  known_ += round->known;
  if (first && !std::isfinite(round->best)) return;  // the rounds try other candidates
  const bool gained = !(round->best > (1 - options_.gain) * state.best());
  state.idle = gained ? 0 : state.idle + round->measured + round->known;
  state.history.push_back(round->best);
  state.dead = round->done || round->measured + round->known == 0;
  if (!std::isfinite(round->best) &&
      static_cast<int>(state.history.size()) >= options_.warm_rounds) {
    state.dead = true;
    state.error = tasks_[task].name + ": no candidate has worked";
  }
}

bool TaskScheduler::converged() const {
  const size_t lap = 2 * static_cast<size_t>(
                             std::count_if(states_.begin(), states_.end(),
                                           [](const TaskState& s) { return s.error.empty(); }));
  if (options_.until <= 0 || network_.size() <= lap || lap == 0) return false;
  return network_.back() > (1 - options_.until) * network_[network_.size() - 1 - lap];
}

std::vector<size_t> TaskScheduler::by_work() const {
  std::vector<size_t> order(tasks_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t i) { return tasks_[i].weight * tasks_[i].flops; });
  return order;
}

Expected<StopReason> TaskScheduler::run(SearchWatch& watch) {
  const double start = watch.now();
  const auto reason = [&]() -> std::optional<StopReason> {
    if (watch.asked_to_stop()) return StopReason::interrupted;
    if (options_.trials > 0 && trials() >= options_.trials) return StopReason::trials;
    if (watch.now() >= search_end(options_, start, watch)) return StopReason::time;
    if (converged()) return StopReason::converged;
    return std::nullopt;
  };
  const auto watched = [&](size_t task, bool first,
                           const std::function<Expected<TaskRound>()>& round) {
    watch.task_begins(task);
    record_round(task, round(), first);
    watch.task_ends(task);
  };
  const std::vector<size_t> order = by_work();
  for (const size_t task : order) {
    if (!tasks_[task].first) continue;
    if (const std::optional<StopReason> why = reason()) return *why;
    watched(task, true, tasks_[task].first);
  }
  while (true) {
    if (const std::optional<StopReason> why = reason()) return *why;
    // Gives each task without a result a round, again until it has one.
    std::optional<size_t> next;
    for (const size_t i : order)
      if (!states_[i].dead && !std::isfinite(states_[i].best()) &&
          (!next || states_[i].history.size() < states_[*next].history.size()))
        next = i;
    const bool warm = !next;
    if (warm &&
        std::all_of(states_.begin(), states_.end(), [](const TaskState& s) { return s.dead; }))
      break;
    if (warm) next = choose();
    const int most = options_.trials > 0 ? std::min(options_.batch, options_.trials - trials())
                                         : options_.batch;
    watched(*next, false, [&] { return tasks_[*next].round(most); });
    if (warm) network_.push_back(network_seconds());
  }
  std::vector<Diag> failures;
  for (const TaskState& state : states_)
    if (!state.error.empty()) failures.push_back({DiagCode::illegal_schedule, state.error, {}, {}});
  if (!failures.empty() && failures.size() == states_.size())
    return make_error(std::move(failures));
  return StopReason::finished;
}

}  // namespace tw
