#include "driver/tune/network_proof.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

namespace tw {
namespace {

constexpr double kRuns = 0.1;        // share of the time for the runs that are compared
constexpr double kSlower = 1.15;     // factor for a second compile, as its kernels are larger
constexpr double kMost = 1.0 / 3;    // share of the limit for a compile and the runs
constexpr double kNarrow = 0.01;     // width of an interval that is narrow enough
constexpr double kLeastRuns = 0.05;  // seconds of runs in a process

// Seconds of the clock are for the runs of one comparison.
CompareOptions comparing(int threads, double seconds) {
  CompareOptions out{.narrow = kNarrow, .most_seconds = seconds, .threads = threads};
  out.seconds = std::clamp(seconds / compare_seconds({.seconds = 1}), kLeastRuns, out.seconds);
  return out;
}

using Kernels = std::map<std::string, std::multiset<std::string>>;  // by task, with schedules
std::string text_of(const Pin& pin) { return pin.target + pin.kernel_hash + pin.schedule; }
Kernels kernels_of(const NetworkLibrary& library) {
  Kernels out;
  for (const Pin& pin : library.report().schedules) out[pin.task].insert(text_of(pin));
  return out;
}

// The search's records, and networks in which those of some tasks count
class Trial {
 public:
  Trial(const ProofRequest& request, const Target& target, const NetworkLibrary& before,
        TuningLog& log, const SearchEnd& end)
      : request_(request), target_(target), before_(before), log_(log), end_(end) {
    const double now = end.clock();
    runs_ = kRuns * (request.limit > 0 ? request.limit : now);
    until_ = request.limit > 0 ? request.limit : now + std::max(kMost * now, 3 * seconds_of_one());
  }

  Error read_records();
  Expected<NetworkVerdict> judge();
  // Nothing that the search found counts any more.
  Error reject_all() { return mark({}, all_); }

 private:
  double seconds_of_one() const {
    return kSlower * before_.compile_seconds() + std::max(runs_, least_runs());
  }
  double least_runs() const {
    return compare_seconds(comparing(request_.schedules.threads, runs_), before_.run_seconds());
  }
  bool stopped() const { return end_.stop && end_.stop(); }
  Error mark(const TaskSet& kept, const TaskSet& of);
  Expected<NetworkLibrary> compile() const {
    return NetworkLibrary::compile(request_.options, request_.schedules, target_);
  }
  Expected<const NetworkLibrary*> library(const TaskSet& kept);
  void blame(const NetworkLibrary& after);
  Expected<std::optional<Comparison>> time(const TaskSet& before, const TaskSet& after);
  Expected<bool> restores() const;
  Error settle(const TaskSet& kept, NetworkVerdict& out);

  const ProofRequest& request_;
  const Target& target_;
  const NetworkLibrary& before_;
  TuningLog& log_;
  const SearchEnd& end_;
  double runs_ = 0, until_ = 0;                          // seconds
  std::map<std::string, std::vector<std::string>> ids_;  // new records by task
  TaskSet all_;                                          // tasks with new records
  std::vector<TaskClaim> blamed_;                        // tasks whose records matter
  // By the blamed tasks that are kept
  std::map<TaskSet, std::shared_ptr<const NetworkLibrary>> libraries_;
  bool timed_ = false;
};

Error Trial::read_records() {
  for (const TaskClaim& claim : end_.claims) {
    TW_TRY(log_.each({.task = claim.task}, [&](const Record& record) {
      if (const std::string id = record_id(record); end_.added.contains(id))
        ids_[claim.task].push_back(id);
      return Error::success();
    }));
    if (ids_.contains(claim.task)) all_.insert(claim.task);
  }
  return Error::success();
}

// Lets the new records of kept tasks count, and rejects the others of `of`.
Error Trial::mark(const TaskSet& kept, const TaskSet& of) {
  for (const std::string& task : of)
    TW_TRY(log_.mark(ids_[task], !kept.contains(task)).takeError());
  return Error::success();
}

// The network in which the new records of these blamed tasks count
Expected<const NetworkLibrary*> Trial::library(const TaskSet& kept) {
  if (kept.empty()) return &before_;
  if (const auto known = libraries_.find(kept); known != libraries_.end())
    return known->second.get();
  TW_TRY(mark(kept, tasks_of(blamed_)));
  TW_ASSIGN(NetworkLibrary made, compile());
  return libraries_.emplace(kept, std::make_shared<const NetworkLibrary>(std::move(made)))
      .first->second.get();
}

// Finds the tasks whose kernels are others now. A kernel also changes because of other tasks'
// records: it takes over their schedule, or lies beside another layout. If all do, every task is to
// blame.
void Trial::blame(const NetworkLibrary& after) {
  Kernels old = kernels_of(before_);
  TaskSet changed;
  for (const Pin& pin : after.report().schedules)
    if (!pin.transferred && !old[pin.task].contains(text_of(pin))) changed.insert(pin.task);
  const auto is_changed = [&](const TaskClaim& claim) { return changed.contains(claim.task); };
  for (const TaskClaim& claim : end_.claims)
    if (all_.contains(claim.task)) blamed_.push_back(claim);
  if (std::ranges::any_of(blamed_, is_changed)) std::erase_if(blamed_, std::not_fn(is_changed));
}

Expected<std::optional<Comparison>> Trial::time(const TaskSet& before, const TaskSet& after) {
  const bool made = after.empty() || libraries_.contains(after);
  const double needed = made ? least_runs() : seconds_of_one();
  // The time for the first comparison was kept.
  if (stopped() || (timed_ && end_.clock() + needed > until_)) return std::nullopt;
  TW_ASSIGN(const NetworkLibrary* a, library(before));
  TW_ASSIGN(const NetworkLibrary* b, library(after));
  CompareOptions options = comparing(request_.schedules.threads, runs_);
  options.dims = a->sizes();
  Expected<Comparison> timed = request_.compare(a->path(), b->path(), options);
  timed_ = true;
  if (timed) return std::optional(*timed);
  if (!stopped()) return timed.takeError();
  llvm::consumeError(timed.takeError());  // an interrupt ends the processes, too
  return std::nullopt;
}

// True if the network by the log is the one before the search.
Expected<bool> Trial::restores() const {
  if (end_.clock() + kSlower * before_.compile_seconds() > until_) return false;
  TW_ASSIGN(const NetworkLibrary now, compile());
  return kernels_of(now) == kernels_of(before_);
}

Error Trial::settle(const TaskSet& kept, NetworkVerdict& out) {
  TaskSet of = tasks_of(blamed_);
  TW_TRY(mark(kept, of));
  if (kept.empty()) {
    TW_ASSIGN(const bool restored, restores());
    if (!restored) {
      of = all_;
      TW_TRY(mark(kept, of));
    }
  }
  for (const TaskClaim& claim : end_.claims) {
    if (!of.contains(claim.task) || kept.contains(claim.task)) continue;
    out.rejected.push_back(claim);
    out.records += static_cast<int64_t>(ids_[claim.task].size());
  }
  return Error::success();
}

Expected<NetworkVerdict> Trial::judge() {
  NetworkVerdict out;
  if (stopped()) {
    out.reason = "the search was interrupted";
    return out;
  }
  out.proved = Proved::unchanged;
  if (all_.empty()) return out;
  TW_ASSIGN(NetworkLibrary after, compile());
  if (kernels_of(after) == kernels_of(before_)) return out;
  blame(after);
  libraries_.emplace(tasks_of(blamed_), std::make_shared<const NetworkLibrary>(std::move(after)));
  TW_ASSIGN(const KeptTasks kept,
            choose_kept(blamed_, [&](const TaskSet& a, const TaskSet& b) { return time(a, b); }));
  out.all = kept.all, out.some = kept.some;
  out.proved = !kept.all                      ? Proved::untimed
               : kept.all->second_is_faster() ? Proved::faster
               : kept.all->first_is_faster()  ? Proved::slower
                                              : Proved::same;
  if (!kept.all) out.reason = "the comparison was interrupted";
  TW_TRY(settle(kept.kept, out));
  if (kept.kept.empty()) out.some.reset();
  else if (const auto made = libraries_.find(kept.kept); made != libraries_.end())
    out.library = made->second;
  return out;
}

}  // namespace

const char* proved_name(Proved proved) {
  switch (proved) {
    case Proved::untimed: return "not-timed";
    case Proved::unchanged: return "unchanged";
    case Proved::faster: return "faster";
    case Proved::same: return "same";
    case Proved::slower: return "slower";
  }
  TW_UNREACHABLE("a verdict");
}

Expected<NetworkProof> NetworkProof::begin(ProofRequest request, const Target& target,
                                           const OnStage& stage) {
  ScheduleOptions now = request.schedules;
  std::error_code none;  // a log that is not there yet has nothing
  if (!std::filesystem::exists(now.log, none)) now.log.clear();
  TW_ASSIGN(NetworkLibrary before, NetworkLibrary::compile(request.options, now, target, stage));
  if (!stops(request.options, before.report())) TW_TRY(before.run());
  return NetworkProof(std::move(request), target, std::move(before));
}

double NetworkProof::kept() const {
  if (request_.limit <= 0) return 0;
  const double runs = kRuns * request_.limit;
  return kSlower * before_.compile_seconds() +
         std::max(runs, compare_seconds(comparing(request_.schedules.threads, runs),
                                        before_.run_seconds()));
}

bool NetworkProof::fits() const { return kept() <= kMost * request_.limit; }

Expected<NetworkVerdict> NetworkProof::judge(TuningLog& log, const SearchEnd& end) const {
  Trial trial(request_, target_, before_, log, end);
  TW_TRY(trial.read_records());
  Expected<NetworkVerdict> out = trial.judge();
  if (out) return out;
  Error error = out.takeError();
  TW_TRY(trial.reject_all());
  return error;
}

Expected<NetworkVerdict> judge_search(const NetworkProof& proof, const TuneRequest& request,
                                      TunedNetwork& tuned) {
  NetworkTuner& tuner = *tuned.tuner;
  SearchEnd end{
      .added = tuned.added,
      .claims = {},
      .clock =
          [start = request.start] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
          },
      .stop = [&] { return request.stop && request.stop->load(); }};
  std::map<std::string, NetworkTuner::Row> rows;
  for (size_t i = 0; i < tuner.task_count(); ++i) {
    const NetworkTuner::Row row = tuner.row(i);
    const double saved = static_cast<double>(row.task->calls) * (row.first - row.best);
    end.claims.push_back({row.task->key, row.task->name, std::isfinite(saved) ? saved : 0,
                          row.gain && row.gain->interval.low > 1});
    rows.emplace(row.task->key, row);
  }
  TW_ASSIGN(TuningLog log, TuningLog::open(request.log, TuningLog::Mode::write));
  TW_ASSIGN(NetworkVerdict verdict, proof.judge(log, end));
  std::map<std::string, ConfirmedGain> by_default;
  for (const TaskClaim& claim : verdict.rejected)
    if (const NetworkTuner::Row& row = rows.at(claim.task); std::isfinite(row.first))
      by_default[claim.task] = {row.gain.value_or(PairedGain()), row.first, row.best, false};
  tuner.settle(by_default);
  tuned.outcome.seconds = end.clock();
  return verdict;
}

}  // namespace tw
