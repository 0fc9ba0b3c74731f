#include "driver/tune/tune_network.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "autotune/measure/place.h"
#include "driver/tune/unused_records.h"

namespace tw {
namespace {

// A worker that is gone ends the search as an interrupt does.
struct LostWorker {
  std::atomic<bool> ended = false, gone = false;

  // This object must outlive both.
  void watch(NetworkServices& services, TuneRequest& request) {
    services.measure = [this, measure = services.measure, asked = request.stop](
                           const Task& task, std::span<const Candidate> candidates,
                           const StopAsked& stop) {
      std::vector<MeasureResult> results = measure(task, candidates, stop);
      gone = gone || std::ranges::any_of(results, &MeasureResult::lost);
      ended = gone || (asked && *asked);
      return results;
    };
    request.stop = &ended;
  }
};

// Tells the watch when the search ends, however it ends.
class ShownSearch {
 public:
  ShownSearch(TuneWatch& watch, const NetworkTuner& tuner, const Peaks& peaks,
              const TuneBudget& budget)
      : watch_(watch) {
    watch_.search_begins(tuner, peaks, budget);
  }
  ~ShownSearch() { watch_.search_ends(); }
  ShownSearch(const ShownSearch&) = delete;

 private:
  TuneWatch& watch_;
};

// confirm: gains are measured again, for which a part of the time is kept.
Expected<StopReason> search(NetworkTuner& tuner, const TuneRequest& request, const Peaks& peaks,
                            const TuneBudget& budget, bool confirm, TuneWatch& watch) {
  const double before = budget.now();
  std::atomic<double> kept = 0;  // seconds for measuring again; several threads read it
  const ShownSearch shown(watch, tuner, peaks, budget);
  const SearchWatch tasks{.begins = [&](size_t task) { watch.task_begins(task); },
                          .ends =
                              [&](size_t task) {
                                // The next round may find one more gain.
                                if (confirm)
                                  kept = budget.confirm_seconds(tuner.gains() + 1, tuner.measured(),
                                                                budget.now() - before);
                                watch.task_ends(task);
                              },
                          .kept = [&] { return kept.load(); }};
  return tuner.run([&] { return budget.now(); }, request.stop, tasks);
}

Expected<std::vector<Task>> measurable_tasks(const TuneRequest& request, const Target& target,
                                             const TuneServices& services) {
  TW_ASSIGN(std::vector<Task> tasks, chosen_tasks(request, target));
  if (!services.runs) return tasks;
  std::erase_if(tasks, [&](const Task& task) { return !services.runs(task); });
  if (tasks.empty())
    return make_error(
        DiagCode::unsupported,
        "device '{0}' runs no kernel of '{1}'; 'tilewright compile --json' says why of each",
        target.main_device().name, request.model);
  return tasks;
}

}  // namespace

Expected<std::vector<Task>> chosen_tasks(const TuneRequest& request, const Target& target) {
  TW_ASSIGN(std::vector<Task> tasks,
            model_tasks(request.model, {request.dims, {}, request.given}, target,
                        {request.rounding, request.exact, request.refused}));
  if (request.kernel == 0) return tasks;
  if (request.kernel < 0 || static_cast<size_t>(request.kernel) > tasks.size())
    return make_error(DiagCode::invalid_argument, "there is no kernel {0}: the model has {1}",
                      request.kernel, tasks.size());
  return std::vector<Task>{std::move(tasks[static_cast<size_t>(request.kernel) - 1])};
}

Error check_tunable(const TuneRequest& request, const Target& target) {
  TW_TRY(measuring_place(target,
                         {.threads = request.network.threads, .worker = request.sources.worker})
             .takeError());
  std::error_code none;  // a log that is not there yet is made by the search
  return std::filesystem::exists(request.log, none)
             ? TuningLog::open(request.log, TuningLog::Mode::write).takeError()
             : Error::success();
}

Expected<TunedNetwork> tune_network(const TuneRequest& request, const Target& target,
                                    TuneWatch& watch) {
  const TuneBudget budget(request.network.scheduler.seconds, request.kept, [start = request.start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  TW_ASSIGN(TuningLog log, TuningLog::open(request.log, TuningLog::Mode::write));
  TW_ASSIGN(TuneServices services, tune_services(target, request.sources, &log));
  watch.stage_begins("import");
  TW_ASSIGN(std::vector<Task> tasks, measurable_tasks(request, target, services));
  TunedNetwork tuned;
  std::set<std::string> keys;
  for (const Task& task : tasks) keys.insert(task.key);
  TW_ASSIGN(tuned.unused,
            unused_records(log, keys, {target_key(target.main_device())}, request.network.threads));
  // Comparing methods needs no share of the peak, and another machine's peak is not known here.
  if (!services.runs && !request.network.table && request.sources.worker.empty()) {
    watch.stage_begins("probe");
    TW_ASSIGN(tuned.peaks, measure_peaks(target, request.network.threads));
  }
  watch.stage_ends();
  TuneRequest ending = request;
  LostWorker lost;
  if (!request.sources.worker.empty()) lost.watch(services.network, ending);
  const bool confirms = !request.network.table && !services.exact;
  const std::vector<Task> confirmed = confirms ? tasks : std::vector<Task>();
  TuneOutcome& outcome = tuned.outcome;
  outcome.limit = budget.limit();
  outcome.before = budget.now();
  NetworkOptions options = request.network;
  options.scheduler.seconds = budget.search_seconds();
  TW_ASSIGN(tuned.tuner, NetworkTuner::create(std::move(tasks), target.main_device(),
                                              std::move(services.network), options));
  NetworkTuner& tuner = *tuned.tuner;
  TW_ASSIGN(tuned.reason, search(tuner, ending, tuned.peaks, budget, !confirmed.empty(), watch));
  if (lost.gone)
    return make_error(DiagCode::io,
                      "the worker of '{0}' does not answer; what it measured is in the log",
                      request.sources.worker);
  outcome.searched = budget.now() - outcome.before;
  watch.stage_begins("confirm");
  TW_ASSIGN(
      outcome.confirmed,
      confirm_records(confirmed, log, target, budget,
                      {.threads = request.network.threads,
                       .worker = request.sources.worker,
                       .stop = [&] { return request.stop && request.stop->load(); },
                       .expected = TuneBudget::confirm_one(tuner.measured(), outcome.searched),
                       .watch = [&](const std::string& text) { watch.stage_at(text); }}));
  watch.stage_ends();
  outcome.trials = tuner.measured(), outcome.kernels = tuner.task_count(),
  outcome.reached = tuner.reached();
  outcome.failures = tuner.failures();
  outcome.seconds = budget.now();
  return tuned;
}

}  // namespace tw
