#include "driver/tune/tune_network.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "autotune/measure/place.h"
#include "driver/tune/unused_records.h"
#include "ir/kernel/work.h"

namespace tw {
namespace {

// Follows a search: its clock and its end, and tells the watch of its progress.
class FollowedSearch final : public SearchWatch {
 public:
  // confirms: gains are measured again, for which a part of the time is kept.
  FollowedSearch(const NetworkTuner& tuner, const Peaks& peaks, const TuneBudget& budget,
                 const std::atomic<bool>* stop, bool confirms, TuneWatch& watch)
      : tuner_(tuner),
        budget_(budget),
        stop_(stop),
        confirms_(confirms),
        watch_(watch),
        start_(budget.now()) {
    watch_.search_begins(tuner, peaks, budget);
  }
  ~FollowedSearch() override { watch_.search_ends(); }
  FollowedSearch(const FollowedSearch&) = delete;

  double now() const override { return budget_.now(); }
  // A worker that is gone ends the search as an interrupt does.
  bool asked_to_stop() const override { return (stop_ && *stop_) || tuner_.lost(); }
  double kept() const override { return kept_; }
  void task_begins(size_t task) override { watch_.task_begins(task); }
  void task_ends(size_t task) override {
    // The next round may find one more gain.
    if (confirms_)
      kept_ = budget_.confirm_seconds(tuner_.gains() + 1, tuner_.measured(), now() - start_);
    watch_.task_ends(task);
  }

 private:
  const NetworkTuner& tuner_;
  const TuneBudget& budget_;
  const std::atomic<bool>* stop_;
  bool confirms_;
  TuneWatch& watch_;
  double start_;
  std::atomic<double> kept_ = 0;  // seconds for measuring again; several threads read it
};

Expected<std::vector<Task>> measurable_tasks(const TuneRequest& request, const Target& target,
                                             const MeasuringPlace& place) {
  TW_ASSIGN(std::vector<Task> tasks, chosen_tasks(request, target));
  std::erase_if(tasks, [&](const Task& task) { return !place.runs(task); });
  if (place.device && tasks.empty())
    return make_error(
        DiagCode::unsupported,
        "device '{0}' runs no kernel of '{1}'; 'tilewright compile --json' says why of each",
        place.target().name, request.model);
  return tasks;
}

double at_one(const Expr& e) {  // free dimensions are 1, as in the measurements
  return static_cast<double>(eval_int(e, [](std::string_view) { return int64_t{1}; }));
}

// Operations of the longest sum of products, which an algorithm does whatever else it needs
double product_flops(const Kernel& kernel) {
  double most = 0;
  for (const StoreRef& store : stores_of(kernel.body)) {
    double points = 2;
    bool sums = false;
    for (const Stmt& s : path_to(kernel.body, store->label))
      if (const auto* loop = as<stmt::Loop>(s)) {
        points *= at_one(loop->extent);
        sums |= loop->role == AxisRole::reduce;
      }
    if (sums) most = std::max(most, points);
  }
  return most;
}

// The least seconds that arithmetic and memory allow a task, by the algorithm for which they are
// least; 0: the peaks are not known
double roof_seconds(const Task& task, const Peaks& peaks, DType multiplies) {
  if (peaks.gflops <= 0 || peaks.levels.empty()) return 0;
  double least = kInfiniteSeconds;
  for (const Variant& variant : task.variants) {
    const Kernel kernel = take_out_constant_stages(variant.lowered.kernel).kernel;
    const Work work = count_work(kernel);
    const double weights = at_one(work.weight_bytes), tensors = at_one(work.tensor_bytes);
    const bool direct = variant.algorithm == Algorithm::direct;
    const Roof roof = roof_of(peaks, multiplies, direct ? task.flops : product_flops(kernel), 0,
                              weights, tensors,
                              static_cast<double>(task.weights_between) + tensors);
    least = std::min(least, roof.seconds);
  }
  return least;
}

Expected<std::vector<SearchedTask>> searched_tasks(const std::vector<Task>& tasks,
                                                   const TuneRequest& request,
                                                   const MeasuringPlace& place,
                                                   const std::shared_ptr<Transport>& process,
                                                   const std::shared_ptr<const Peaks>& peaks) {
  std::vector<SearchedTask> out;
  for (const Task& task : tasks) {
    auto own = std::make_shared<const Task>(task);
    TW_ASSIGN(Space space, search_space(*own, place.target(), request.space));
    auto measurer = std::make_unique<TaskMeasurer>(place, process, *own,
                                                   MeasureSettings{.seed = request.network.seed});
    out.push_back({own, std::move(space), std::move(measurer), [own, peaks](DType multiplies) {
                     return roof_seconds(*own, *peaks, multiplies);
                   }});
  }
  return out;
}

Expected<MeasuringPlace> place_of(const TuneRequest& request, const Target& target) {
  return measuring_place(
      target,
      {.threads = request.network.threads, .jobs = request.network.jobs, .worker = request.worker});
}

Expected<ConfirmedRecords> confirm_gains(const std::vector<Task>& tasks, const TuneRequest& request,
                                         TuningLog& log, const MeasuringPlace& place,
                                         const TuneBudget& budget, const TunedNetwork& tuned,
                                         TuneWatch& watch) {
  watch.stage_begins("confirm");
  const ConfirmOptions options{
      .threads = request.network.threads,
      .stop = [&] { return request.stop && request.stop->load(); },
      .expected = TuneBudget::confirm_one(tuned.tuner->measured(), tuned.outcome.searched),
      .watch = [&](const std::string& text) { watch.stage_at(text); }};
  TW_ASSIGN(const ConfirmedRecords confirmed, confirm_records(tasks, log, place, budget, options));
  watch.stage_ends();
  return confirmed;
}

// Where the machine was disturbed, the probe before the search may have been, too.
Error probe_again(const TuneRequest& request, const Target& target, const TuneBudget& budget,
                  TunedNetwork& tuned, Peaks& peaks) {
  constexpr double kProbe = 1;  // seconds that it may take
  const bool stopped = request.stop && request.stop->load();
  if (stopped || peaks.gflops <= 0 || !tuned.tuner->disturbed() || !budget.fits(kProbe))
    return Error::success();
  TW_ASSIGN(const Peaks again, measure_peaks(target, request.network.threads));
  tuned.peaks = peaks = larger_of(peaks, again);
  tuned.tuner->renew_roofs();
  return Error::success();
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
  TW_TRY(place_of(request, target).takeError());
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
  TW_ASSIGN(const MeasuringPlace place, place_of(request, target));
  TW_ASSIGN(const std::shared_ptr<Transport> process, place.process());
  watch.stage_begins("import");
  TW_ASSIGN(const std::vector<Task> tasks, measurable_tasks(request, target, place));
  TunedNetwork tuned;
  std::set<std::string> keys;
  for (const Task& task : tasks) keys.insert(task.key);
  TW_ASSIGN(tuned.unused,
            unused_records(log, keys, {target_key(target.main_device())}, request.network.threads));
  // Comparing methods needs no share of the peak, and another machine's peak is not known here.
  if (!place.device && !request.network.table && request.worker.empty()) {
    watch.stage_begins("probe");
    TW_ASSIGN(tuned.peaks, measure_peaks(target, request.network.threads));
  }
  watch.stage_ends();
  const bool confirms = !request.network.table && place.timed() && !tasks.empty();
  TuneOutcome& outcome = tuned.outcome;
  outcome.limit = budget.limit();
  outcome.before = budget.now();
  const auto peaks = std::make_shared<Peaks>(tuned.peaks);
  NetworkOptions options = request.network;
  options.scheduler.seconds = budget.search_seconds();
  TW_ASSIGN(std::vector<SearchedTask> searched,
            searched_tasks(tasks, request, place, process, peaks));
  TW_ASSIGN(tuned.tuner,
            NetworkTuner::create(std::move(searched), target.main_device(), &log, options));
  NetworkTuner& tuner = *tuned.tuner;
  {
    FollowedSearch followed(tuner, tuned.peaks, budget, request.stop, confirms, watch);
    TW_ASSIGN(tuned.reason, tuner.run(followed));
  }
  if (tuner.lost())
    return make_error(DiagCode::io,
                      "the worker of '{0}' does not answer; what it measured is in the log",
                      request.worker);
  outcome.searched = budget.now() - outcome.before;
  TW_ASSIGN(outcome.confirmed, confirm_gains(confirms ? tasks : std::vector<Task>(), request, log,
                                             place, budget, tuned, watch));
  tuner.settle(outcome.confirmed.gains);
  TW_TRY(probe_again(request, target, budget, tuned, *peaks));
  outcome.trials = tuner.measured(), outcome.kernels = tuner.task_count(),
  outcome.reached = tuner.reached();
  outcome.failures = tuner.failures();
  outcome.seconds = budget.now();
  tuned.added = log.added();
  return tuned;
}

}  // namespace tw
