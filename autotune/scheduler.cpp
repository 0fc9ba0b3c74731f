#include "autotune/scheduler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "autotune/record.h"

namespace tw {
namespace {
constexpr double kGolden = 1.618;
constexpr size_t kPatientRounds = 5;  // rounds that a task may lag behind its group
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
    : tasks_(std::move(tasks)), options_(options), states_(tasks_.size()), random_(options.seed) {}

double TaskScheduler::network_seconds() const {
  double sum = 0;
  for (size_t i = 0; i < tasks_.size(); ++i)
    if (std::isfinite(states_[i].best())) sum += tasks_[i].weight * states_[i].best();
  return sum;
}

// The expected change of the network's time by one more round; negative: a gain. One part follows
// the last rounds. The rest is the smaller of two predictions: a time that falls as 1/rounds, and
// the rate that similar tasks have reached.
double TaskScheduler::gradient(size_t task) const {
  const std::vector<double>& g = states_[task].history;
  const size_t t = g.size(), window = static_cast<size_t>(options_.window);
  const double now = g.back();
  const bool far_enough = t > window && std::isfinite(g[t - 1 - window]);
  const double backward = far_enough ? (now - g[t - 1 - window]) / options_.window : 0;
  double next = now - now / static_cast<double>(t);
  double rate = 0;
  for (size_t i = 0; i < tasks_.size(); ++i)
    if (tasks_[i].group == tasks_[task].group && std::isfinite(states_[i].best()))
      rate = std::max(rate, tasks_[i].flops / states_[i].best());
  if (rate > 0 && tasks_[task].flops > 0)
    next = std::min(next, options_.beta * tasks_[task].flops / rate);
  return tasks_[task].weight * (options_.alpha * backward + (1 - options_.alpha) * (next - now));
}

// The task with the steepest gradient; a random one when all are equal.
size_t TaskScheduler::choose() {
  std::vector<size_t> alive;
  for (size_t i = 0; i < tasks_.size(); ++i)
    if (!states_[i].dead) alive.push_back(i);
  std::vector<double> gradients;
  for (const size_t i : alive) gradients.push_back(gradient(i));
  const auto [least, most] = std::minmax_element(gradients.begin(), gradients.end());
  if (*least == *most) return alive[random_() % alive.size()];
  return alive[static_cast<size_t>(least - gradients.begin())];
}

// Takes a task out of its group when its rate stays far below the group's best: it is of another
// kind, and is compared with no other task.
void TaskScheduler::leave_hopeless(size_t task) {
  if (tasks_[task].flops <= 0 || !std::isfinite(states_[task].best())) return;
  const double rate = tasks_[task].flops / states_[task].best();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (i == task || tasks_[i].group != tasks_[task].group || !std::isfinite(states_[i].best()))
      continue;
    if (states_[task].history.size() > states_[i].history.size() + kPatientRounds &&
        rate < options_.gamma * tasks_[i].flops / states_[i].best())
      tasks_[task].group = "/" + std::to_string(task);
  }
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
  state.history.push_back(round->best);
  state.dead = round->done || round->measured + round->known == 0;
  if (!std::isfinite(round->best) &&
      static_cast<int>(state.history.size()) >= options_.warm_rounds) {
    state.dead = true;
    state.error = tasks_[task].name + ": no candidate has worked";
  }
  leave_hopeless(task);
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
