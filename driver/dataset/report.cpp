#include "driver/dataset/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "autotune/explorers/seen.h"
#include "autotune/measure/local.h"
#include "autotune/median.h"
#include "autotune/task.h"
#include "driver/dataset/set_programs.h"
#include "driver/dataset/task_labels.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

constexpr size_t kMostOfTask = 24;  // programs of a task that a check takes

// The labels of a task on a platform, both passes.
struct TaskLabelSet {
  const LearningTask* task = nullptr;
  std::vector<Label> first;
  std::map<int64_t, Label> again;
  int64_t standard = 0;  // the default program; 0: none
};

struct Accumulated {
  FamilyStat stat;
  std::vector<double> spreads, standards, deviations, tops;
};

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> out(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) out[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return out;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}
double geometric_mean(const std::vector<double>& values) {
  std::vector<double> logs;
  for (const double v : values) logs.push_back(std::log(v));
  return values.empty() ? 0 : std::exp(mean(logs));
}

void add(Accumulated& to, const TaskLabelSet& labels) {
  ++to.stat.tasks;
  std::vector<double> times;
  double best = 0, standard = 0;
  const Label* fastest = nullptr;  // fastest of the first labels that have a second one
  double least_again = 0;
  for (const Label& l : labels.first) {
    ++to.stat.programs;
    to.stat.contended += l.contended;
    if (l.status != Status::ok) {
      ++to.stat.failures[status_name(l.status)];
      continue;
    }
    times.push_back(l.seconds());
    best = best == 0 ? l.seconds() : std::min(best, l.seconds());
    if (l.program == labels.standard) standard = l.seconds();
    const auto again = labels.again.find(l.program);
    if (again == labels.again.end() || again->second.status != Status::ok) continue;
    ++to.stat.again;
    to.deviations.push_back(std::abs(again->second.seconds() / l.seconds() - 1));
    if (!fastest || l.seconds() < fastest->seconds()) fastest = &l;
    least_again = least_again == 0 ? again->second.seconds()
                                   : std::min(least_again, again->second.seconds());
  }
  if (times.size() > 1) to.spreads.push_back(median_of(times) / best);
  if (standard > 0) to.standards.push_back(standard / best);
  if (fastest) to.tops.push_back(least_again / labels.again.at(fastest->program).seconds());
}

FamilyStat finished(Accumulated& a, const std::string& network) {
  a.stat.network = network;
  a.stat.spread = geometric_mean(a.spreads), a.stat.standard = geometric_mean(a.standards);
  a.stat.noise = a.deviations.empty() ? 0 : median_of(a.deviations);
  a.stat.top1 = mean(a.tops);
  return a.stat;
}

Expected<TaskLabelSet> labels_of(DataSet& set, const LearningTask& task, int64_t platform) {
  TaskLabelSet out{&task, {}, {}, 0};
  TW_ASSIGN(out.first, set.labels(platform, task.id, 0));
  if (out.first.empty()) return out;
  TW_ASSIGN(const std::vector<Label> again, set.labels(platform, task.id, 1));
  for (const Label& l : again) out.again.emplace(l.program, l);
  TW_ASSIGN(const std::vector<LearningProgram> programs, set.programs(task.id));
  for (const LearningProgram& p : programs)
    if (p.source == ProgramSource::standard) out.standard = p.id;
  return out;
}

// Seconds of the programs that worked, by program
using Times = std::map<int64_t, double>;

Likeness likeness_of(const Platform& a, const Platform& b, const std::map<int64_t, Times>& of_a,
                     const std::map<int64_t, Times>& of_b) {
  constexpr size_t kLeast = 8;  // programs of a task in common
  std::vector<double> correlations;
  for (const auto& [task, times] : of_a) {
    const auto other = of_b.find(task);
    if (other == of_b.end()) continue;
    std::vector<double> x, y;
    for (const auto& [program, seconds] : times)
      if (const auto found = other->second.find(program); found != other->second.end())
        x.push_back(seconds), y.push_back(found->second);
    if (x.size() >= kLeast) correlations.push_back(rank_correlation(x, y));
  }
  return {a.id, b.id, static_cast<int>(correlations.size()), mean(correlations)};
}

}  // namespace

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 1;
}

Expected<SetStat> statistics(DataSet& set) {
  SetStat out;
  TW_ASSIGN(const std::vector<LearningTask> tasks, set.tasks());
  TW_ASSIGN(const std::vector<Platform> platforms, set.platforms());
  out.tasks = static_cast<int>(tasks.size());
  out.splits.resize(kSplitCount);
  for (const LearningTask& task : tasks) {
    out.complete += task.complete;
    ++out.splits[static_cast<size_t>(task.split)];
    TW_ASSIGN(const std::vector<LearningProgram> programs, set.programs(task.id));
    out.programs += static_cast<int64_t>(programs.size());
  }
  std::vector<std::map<int64_t, Times>> times(platforms.size());
  for (size_t p = 0; p < platforms.size(); ++p) {
    Accumulated all;
    std::map<std::string, Accumulated> families;
    for (const LearningTask& task : tasks) {
      TW_ASSIGN(const TaskLabelSet labels, labels_of(set, task, platforms[p].id));
      if (labels.first.empty()) continue;
      add(all, labels);
      add(families[task.network], labels);
      times[p][task.id] = times_of(labels.first);
    }
    PlatformStat stat{platforms[p], finished(all, "all"), {}};
    for (auto& [network, accumulated] : families)
      stat.families.push_back(finished(accumulated, network));
    out.platforms.push_back(std::move(stat));
  }
  for (size_t a = 0; a < platforms.size(); ++a)
    for (size_t b = a + 1; b < platforms.size(); ++b)
      out.likeness.push_back(likeness_of(platforms[a], platforms[b], times[a], times[b]));
  return out;
}

namespace {

Expected<CheckedPlatform> check_platform(DataSet& set, const Platform& platform,
                                         const Target& target, const CheckRequest& request) {
  CheckedPlatform out;
  out.platform = platform;
  TW_ASSIGN(LabelPlace place, label_place(target, platform.threads, request.jobs));
  place.platform = platform.id;
  // The labels are estimates by another LLVM, or estimates where this machine can measure.
  if (place.kind() != platform.kind || place.machine() != platform.machine) return out;
  TW_ASSIGN(std::vector<LearningTask> tasks, set.tasks());
  TW_ASSIGN(const auto counts, set.label_counts(platform.id, 0));
  int64_t all = 0;
  for (const auto& [task, count] : counts) all += count;
  const auto wanted = static_cast<int64_t>(std::ceil(request.share * static_cast<double>(all)));
  std::mt19937_64 random(request.seed);
  shuffle(tasks, random);
  std::vector<double> correlations, deviations;
  for (const LearningTask& task : tasks) {
    if (out.programs >= wanted || (request.stop && *request.stop)) break;
    if (!counts.contains(task.id) || !task.complete) continue;
    if (request.watch) request.watch(task.name);
    TW_ASSIGN(Target lowered, load_target(task.lowered_for, request.target_folders));
    TW_ASSIGN(const std::unique_ptr<TaskLabels> labels,
              TaskLabels::create(set, place, task.id, lowered, false, nullptr));
    TW_ASSIGN(const std::vector<Label> before, set.labels(platform.id, task.id, 0));
    TW_ASSIGN(const std::vector<LearningProgram> programs, set.programs(task.id));
    const std::map<int64_t, double> known = times_of(before);
    std::vector<LearningProgram> chosen;
    for (const LearningProgram& p : programs)
      if (known.contains(p.id)) chosen.push_back(p);
    shuffle(chosen, random);
    chosen.resize(
        std::min({chosen.size(), kMostOfTask, static_cast<size_t>(wanted - out.programs)}));
    TW_ASSIGN(const std::vector<Label> again, labels->measure(chosen, nullptr));
    std::vector<double> x, y;
    for (const Label& l : again) {
      ++out.programs;
      if (l.status != Status::ok) {
        ++out.failed;
        continue;
      }
      x.push_back(known.at(l.program)), y.push_back(l.seconds());
      deviations.push_back(std::abs(y.back() / x.back() - 1));
    }
    ++out.tasks;
    if (x.size() > 2) correlations.push_back(rank_correlation(x, y));
  }
  out.correlation = mean(correlations);
  out.deviation = deviations.empty() ? 0 : median_of(deviations);
  return out;
}

}  // namespace

Expected<std::vector<CheckedPlatform>> check_labels(DataSet& set, const CheckRequest& request) {
  TW_ASSIGN(const std::vector<Platform> platforms, set.platforms());
  TW_ASSIGN(const std::unique_ptr<LocalTransport> here, LocalTransport::create({}));
  std::vector<CheckedPlatform> out;
  for (const Platform& platform : platforms) {
    if (platform.kind == LabelKind::time && platform.machine != here->device()) continue;
    TW_ASSIGN(const Target target, load_target(platform.name, request.target_folders));
    if (target_key(target.main_device()) != platform.target) continue;
    TW_ASSIGN(CheckedPlatform checked, check_platform(set, platform, target, request));
    if (checked.tasks > 0) out.push_back(std::move(checked));
  }
  if (out.empty())
    return make_error(DiagCode::unsupported,
                      "'{0}' has no labels of this machine ({1}), and no cycles or estimates of "
                      "targets that this "
                      "version describes alike, which are what can be checked here",
                      set.path(), here->device());
  return out;
}

}  // namespace tw
