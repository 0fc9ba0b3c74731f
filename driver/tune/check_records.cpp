#include "driver/tune/check_records.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <set>
#include <span>

#include "autotune/measure/sampler.h"
#include "autotune/measure/task_measurer.h"
#include "ir/kernel/sharing.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"

namespace tw {
namespace {

// Measuring jobs of a kernel's two schedules
struct Pair {
  MeasureJob by_default, tuned;
};

constexpr int kConfirmProcesses = 3, kConfirmRounds = 6;

struct Best {
  size_t variant = 0;
  Record record;
};

// The best of a task's latest records, and the record of the default schedule of the algorithm in
// use
struct Known {
  std::optional<Best> best, by_default;
  bool is_default(const Best& chosen) const {
    return by_default && chosen.record.schedule == by_default->record.schedule &&
           chosen.record.kernel_hash == by_default->record.kernel_hash;
  }
};
// counts: true if a compile might take the record of that variant.
Known known_of(const Task& task, const std::vector<Record>& records, const std::string& usual,
               const std::function<bool(const LoweredGroup&, const Record&)>& counts) {
  Known known;
  const std::string used = definition_hash(task.variants.front().lowered);
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const std::string hash = definition_hash(task.variants[v].lowered);
    bool found = false;                // the variant's best is found
    for (const Record& r : records) {  // sorted by median
      if (r.kernel_hash != hash || r.status != Status::ok) continue;
      if (hash == used && r.schedule == usual && !known.by_default) known.by_default = Best{v, r};
      if (found || (known.best && median_seconds(r) >= median_seconds(known.best->record)) ||
          !counts(task.variants[v].lowered, r))
        continue;
      known.best = Best{v, r};
      found = true;
    }
  }
  return known;
}

// The record that a compile takes: the best, or the default schedule's if that is as good
std::optional<Best> taken(const Known& known) {
  const bool gains = !known.by_default || is_gain(median_seconds(known.best->record),
                                                  median_seconds(known.by_default->record));
  return gains ? known.best : known.by_default;
}

// True if the record's schedule has work for all cores where the default one has
// (tuned_schedules.h). A schedule that does not apply is found out later.
bool spreads_as(const Kernel& by_default, const LoweredGroup& lowered, const Record& record,
                const Target& target) {
  Expected<Schedule> schedule = parse_schedule(record.schedule);
  Expected<RunKernel> run = schedule ? scheduled_run(lowered, *schedule, target)
                                     : Expected<RunKernel>(schedule.takeError());
  if (run) return spreads_as_well(run->kernel, by_default, target.cores);
  llvm::consumeError(run.takeError());
  return true;
}

Expected<Pair> pair_of(const Task& task, const Schedule& usual, const Best& best,
                       const MeasuringPlace& place) {
  TaskMeasurer measurer(place, nullptr, task);
  const auto job = [&](size_t variant, const Schedule& schedule) -> Expected<MeasureJob> {
    TW_ASSIGN(const RunKernel run,
              scheduled_run(task.variants[variant].lowered, schedule, place.target()));
    return measurer.job(run);
  };
  TW_ASSIGN(const Schedule tuned, parse_schedule(best.record.schedule));
  Pair pair;
  TW_ASSIGN(pair.by_default, job(0, usual));
  TW_ASSIGN(pair.tuned, job(best.variant, tuned));
  return pair;
}

}  // namespace

namespace {

// A task whose record is checked, with the schedules that compete
struct Contest {
  const Task* task = nullptr;
  Known known;
  Best tuned;
  Schedule usual;
  Pair pair = {};  // set by build()
  // Seconds of the network's time that the record claims to save.
  double claim() const {
    return known.by_default
               ? static_cast<double>(task->calls) *
                     (median_seconds(known.by_default->record) - median_seconds(tuned.record))
               : 0;
  }
};

// Selects the record of a task to check; nullopt: none
using Wanted = std::function<std::optional<Best>(const Task& task, const Known& known)>;
Expected<std::vector<Contest>> contests_of(const std::vector<Task>& tasks, TuningLog& log,
                                           const MeasuringPlace& place, int threads,
                                           const Wanted& wanted) {
  const Target& target = place.target();
  std::vector<Contest> contests;
  for (const Task& task : tasks) {
    TW_ASSIGN(const std::vector<Record> records, log.all({task.key, target_key(target), "", threads,
                                                          kLanguageVersion, Status::ok, false}));
    const LoweredGroup& used = task.variants.front().lowered;
    TW_ASSIGN(const Schedule usual, default_schedule(used, target));
    TW_ASSIGN(const RunKernel by_default, scheduled_run(used, usual, target));
    const auto counts = [&](const LoweredGroup& lowered, const Record& record) {
      return place.device || threads > 1 || target.cores == 1 ||
             spreads_as(by_default.kernel, lowered, record, target);
    };
    const Known known = known_of(task, latest(records), print(usual), counts);
    const std::optional<Best> best = known.best ? wanted(task, known) : std::nullopt;
    if (best) contests.push_back({&task, known, *best, usual});
  }
  return contests;
}

// Builds both schedules. False: one of them is of another version of the schedules. A compile
// reports this, and takes the default.
bool build(Contest& contest, const MeasuringPlace& place) {
  Expected<Pair> pair = pair_of(*contest.task, contest.usual, contest.tuned, place);
  if (pair) contest.pair = std::move(*pair);
  else llvm::consumeError(pair.takeError());
  return bool(pair);
}

// Measures the default schedule, the record's, and the default one again, in each of `processes`
// new processes.
Expected<std::vector<CheckedKernel>> measured(std::span<const Contest> contests, int processes,
                                              const MeasuringPlace& place) {
  std::vector<CheckedKernel> kernels;
  for (const Contest& c : contests)
    kernels.push_back({c.task->key,
                       c.task->name,
                       c.tuned.record.algorithm,
                       median_seconds(c.tuned.record),
                       c.known.is_default(c.tuned),
                       {},
                       {},
                       {}});
  for (int p = 0; p < processes; ++p) {
    TW_ASSIGN(const std::unique_ptr<Transport> process, place.process());
    for (size_t k = 0; k < contests.size(); ++k) {
      const std::vector<MeasureJob> jobs = {contests[k].pair.by_default, contests[k].pair.tuned,
                                            contests[k].pair.by_default};
      const std::vector<MeasureResult> results = process->run(jobs);
      kernels[k].first.push_back(seconds_of(results[0]));
      kernels[k].tuned.push_back(seconds_of(results[1]));
      kernels[k].again.push_back(seconds_of(results[2]));
    }
  }
  return kernels;
}

bool all_finite(const std::vector<double>& seconds) {
  return std::ranges::all_of(seconds, [](double s) { return std::isfinite(s); });
}

}  // namespace

Expected<std::vector<CheckedKernel>> check_records(const std::vector<Task>& tasks,
                                                   const std::string& path, const Target& target,
                                                   int threads, int processes,
                                                   const std::string& worker) {
  TW_ASSIGN(TuningLog log, TuningLog::open(path, TuningLog::Mode::read));
  TW_ASSIGN(const MeasuringPlace place,
            measuring_place(target, {.threads = threads, .worker = worker}));
  if (place.predicts_cycles())
    return make_error(DiagCode::unsupported,
                      "there is nothing to check: records of '{0}' are cycles that its code "
                      "generator counts, the same each time",
                      place.target().name);
  TW_ASSIGN(std::vector<Contest> contests,
            contests_of(tasks, log, place, threads,
                        [](const Task&, const Known& known) { return taken(known); }));
  std::erase_if(contests, [&](Contest& contest) { return !build(contest, place); });
  return measured(contests, processes, place);
}

namespace {

// Measures both schedules again and records their times. nullopt: one of them did not work.
Expected<std::optional<ConfirmedGain>> confirm(const Contest& contest, TuningLog& log,
                                               const MeasuringPlace& place) {
  TW_ASSIGN(const std::vector<CheckedKernel> kernels,
            measured({&contest, 1}, kConfirmProcesses, place));
  const CheckedKernel& kernel = kernels.front();
  Record tuned = contest.tuned.record, usual = contest.known.by_default->record;
  tuned.seconds = kernel.tuned;
  usual.seconds = kernel.first;
  usual.seconds.insert(usual.seconds.end(), kernel.again.begin(), kernel.again.end());
  if (!all_finite(tuned.seconds) || !all_finite(usual.seconds)) return std::nullopt;
  tuned.time = usual.time = std::max<int64_t>(std::time(nullptr),
                                              std::max(tuned.time, usual.time) + 1);
  ConfirmedGain out;
  std::vector<double> twice = kernel.tuned;  // each run of the record's lies between two by default
  twice.insert(twice.end(), kernel.tuned.begin(), kernel.tuned.end());
  out.gain = paired_gain(usual.seconds, twice);
  out.tuned = median_seconds(tuned), out.by_default = median_seconds(usual);
  out.stands = is_gain(out.tuned, out.by_default);
  TW_TRY(log.add_all({tuned, usual}).takeError());
  return out;
}

}  // namespace

Expected<ConfirmedRecords> confirm_records(const std::vector<Task>& tasks, TuningLog& log,
                                           const MeasuringPlace& place, const TuneBudget& budget,
                                           const ConfirmOptions& options) {
  if (place.predicts_cycles()) return ConfirmedRecords{};
  // Tasks with the schedules that were measured again
  std::set<std::pair<std::string, std::string>> confirmed;
  ConfirmedRecords counts;
  double longest = options.expected;
  const auto over = [&] { return (options.stop && options.stop()) || !budget.fits(longest); };
  for (int round = 0; round < kConfirmRounds && counts.left == 0; ++round) {
    // A record that would replace the default schedule and was not measured again
    const auto unsure = [&](const Task& task, const Known& known) -> std::optional<Best> {
      const std::optional<Best> best = taken(known);
      return !known.by_default || known.is_default(*best) ||
                     confirmed.contains(
                         {task.key, best->record.kernel_hash + best->record.schedule})
                 ? std::nullopt
                 : best;
    };
    TW_ASSIGN(std::vector<Contest> contests,
              contests_of(tasks, log, place, options.threads, unsure));
    if (contests.empty()) break;
    std::ranges::stable_sort(contests, std::greater(), &Contest::claim);
    for (size_t i = 0; i < contests.size(); ++i) {
      Contest& contest = contests[i];
      if (over()) {
        counts.left = static_cast<int>(contests.size() - i);
        break;
      }
      if (options.watch)
        options.watch(std::to_string(i + 1) + " of " + std::to_string(contests.size()) + "  " +
                      contest.task->name);
      const double start = budget.now();
      confirmed.insert(
          {contest.task->key, contest.tuned.record.kernel_hash + contest.tuned.record.schedule});
      if (!build(contest, place)) continue;
      TW_ASSIGN(const std::optional<ConfirmedGain> gain, confirm(contest, log, place));
      contest.pair = {};
      longest = i == 0 && round == 0 ? budget.now() - start
                                     : std::max(longest, budget.now() - start);
      if (!gain) continue;
      ++(gain->stands ? counts.kept : counts.refuted);
      counts.gains[contest.task->key] = *gain;
    }
  }
  return counts;
}

}  // namespace tw
