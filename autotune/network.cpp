#include "autotune/network.h"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

constexpr int kMostBatch = 64, kTimedBatch = 16, kLeastBatch = 4;

// The options for so many tasks, with the numbers that the user left open
NetworkOptions planned(NetworkOptions options, size_t tasks) {
  const int count = static_cast<int>(std::max<size_t>(1, tasks));
  SchedulerOptions& plan = options.scheduler;
  if (options.tuner->predicted && plan.trials <= 0 && plan.seconds <= 0)
    plan.trials = count * options.trials_each;
  if (plan.batch <= 0) {
    plan.batch = plan.trials > 0 ? std::clamp(plan.trials / count, 1, kMostBatch) : kTimedBatch;
    if (options.tuner->batches > 1)
      plan.batch = std::clamp(plan.batch / options.tuner->batches, 1, kTimedBatch);
  }
  plan.count_known = options.table;
  return options;
}

}  // namespace

Expected<std::unique_ptr<NetworkTuner>> NetworkTuner::create(std::vector<SearchedTask> tasks,
                                                             const Target& target, TuningLog* log,
                                                             const NetworkOptions& options) {
  std::unique_ptr<NetworkTuner> out(new NetworkTuner(options));
  out->options_ = planned(options, tasks.size());
  if (log && options.transfer && !options.table) {
    TW_ASSIGN(out->notes_, notes_of(*log, target_key(target), options.threads));
    std::erase_if(out->notes_, [](const RecordNote& note) { return note.point.empty(); });
  }
  for (SearchedTask& task : tasks)
    out->searches_.push_back(
        std::make_unique<TaskSearch>(std::move(task), target, out->options_, log));
  return out;
}

// Tasks of the same family whose searches have results, the nearest shape first
std::vector<SimilarTask> NetworkTuner::similar(const TaskSearch& search) const {
  std::vector<std::pair<double, SimilarTask>> list;
  for (const auto& other : searches_)
    if (other.get() != &search && other->begun() &&
        std::isfinite(other->as_similar().tuner->best_seconds()) &&
        other->shape().family == search.shape().family)
      list.emplace_back(distance(search.shape(), other->shape()), other->as_similar());
  std::ranges::stable_sort(list, {}, [](const auto& one) { return one.first; });
  std::vector<SimilarTask> out;
  for (const auto& [far, other] : list) out.push_back(other);
  return out;
}

// Measurements of a task's round. Many kernels with small shares of the time each get a few, so
// that a lap over them costs little, and more only while they gain.
int NetworkTuner::batch_of(const TaskSearch& search) const {
  const int most = options_.scheduler.batch;
  const double network = first_seconds();
  if (!own_batches_ || !std::isfinite(search.first_seconds()) || network <= 0) return most;
  const double part = static_cast<double>(search.task().calls) * search.first_seconds() / network *
                      static_cast<double>(searches_.size());
  return std::min(most, std::max(kLeastBatch, static_cast<int>(part * most)));
}

Expected<TaskRound> NetworkTuner::round(TaskSearch& search, int most) {
  if (!search.begun()) TW_TRY(search.begin(similar(search), notes_, batch_of(search)));
  return search.round(most);
}

Expected<StopReason> NetworkTuner::run(SearchWatch& watch) {
  const StopAsked stop = [this, &watch, start = watch.now()] {
    return watch.asked_to_stop() || watch.now() >= search_end(options_.scheduler, start, watch);
  };
  std::vector<ScheduledTask> tasks;
  for (const auto& owned : searches_) {
    TaskSearch& search = *owned;
    search.follow(watch, stop);
    const Task& task = search.task();
    tasks.push_back({task.name, similar_group(search.shape().family, task.flops),
                     static_cast<double>(task.calls), task.flops,
                     [this, &search](int most) { return round(search, most); }});
    if (!options_.table) tasks.back().first = [&search] { return search.first_round(); };
    tasks.back().roof = [&search] { return search.roof(); };
  }
  scheduler_ = std::make_unique<TaskScheduler>(std::move(tasks), options_.scheduler);
  TW_ASSIGN(const StopReason reason, scheduler_->run(watch));
  std::vector<Diag> unstored;
  for (const auto& search : searches_)
    std::ranges::copy(search->unstored(), std::back_inserter(unstored));
  if (!unstored.empty()) return make_error(std::move(unstored));
  return reason;
}

NetworkTuner::Row NetworkTuner::row(size_t task) const {
  return searches_[task]->row(scheduler_ ? &scheduler_->states()[task] : nullptr);
}

void NetworkTuner::settle(const std::map<std::string, ConfirmedGain>& confirmed) {
  for (const auto& search : searches_)
    if (const auto found = confirmed.find(search->task().key); found != confirmed.end())
      search->settle(found->second);
}

double NetworkTuner::network_seconds() const {
  double sum = 0;
  for (const auto& s : searches_)
    if (std::isfinite(s->best_seconds()))
      sum += static_cast<double>(s->task().calls) * s->best_seconds();
  return sum;
}

double NetworkTuner::first_seconds() const {
  double sum = 0;
  for (const auto& s : searches_)
    if (std::isfinite(s->first_seconds()))
      sum += static_cast<double>(s->task().calls) * s->first_seconds();
  return sum;
}

double NetworkTuner::measuring_seconds() const {
  double sum = 0;
  for (const auto& s : searches_) sum += s->measuring_seconds();
  return sum;
}

size_t NetworkTuner::reached() const {
  size_t count = 0;
  for (size_t i = 0; i < searches_.size(); ++i) count += std::isfinite(row(i).best);
  return count;
}

std::vector<std::string> NetworkTuner::failures() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < searches_.size(); ++i)
    if (const std::string error = row(i).error; !error.empty())
      lines.push_back(error.substr(0, error.find('\n')));
  return lines;
}

size_t NetworkTuner::gains() const {
  size_t count = 0;
  for (size_t i = 0; i < searches_.size(); ++i)
    count += std::isfinite(row(i).first) && is_gain(row(i).best, row(i).first);
  return count;
}

bool NetworkTuner::disturbed() const {
  return std::ranges::any_of(searches_, [](const auto& search) { return search->disturbed(); });
}

void NetworkTuner::renew_roofs() {
  for (const auto& search : searches_) search->renew_roof();
}

bool NetworkTuner::lost() const {
  return std::ranges::any_of(searches_, [](const auto& search) { return search->lost(); });
}

}  // namespace tw
