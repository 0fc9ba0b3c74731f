#include "autotune/measure/session.h"

#include <algorithm>
#include <limits>
#include <set>

#include "autotune/measure/message.h"
#include "autotune/measure/sampler.h"
#include "support/hash.h"
#include "support/parallel.h"

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

struct Measurer::Trial {
  std::string key;  // key in known_; empty: not built
  CandidateObjects objects;
  MeasureJob job;
  MeasureResult failed;  // result when not built
  bool left = false;     // stopped before it was built

  void fail(Error error) {
    key.clear();
    failed.status = Status::compile_error;
    failed.error = one_line(error_text(std::move(error)));
  }
};

Measurer::Measurer(Transport& transport, const CandidateBuilder& builder, MeasurerOptions options)
    : transport_(transport), builder_(builder), options_(options), best_(kNever) {}

std::vector<MeasureResult> Measurer::measure(
    std::span<const std::shared_ptr<const RunKernel>> kernels, const Reference& reference,
    const StopAsked& stop) {
  std::vector<Trial> trials = compile_all(kernels, reference, stop);
  const std::vector<Trial*> fresh = link_new(trials);
  time_all(fresh, stop);
  check_best(fresh, reference);
  std::vector<MeasureResult> results;
  for (const Trial& trial : trials) {
    if (trial.left || (!trial.key.empty() && !known_.contains(trial.key))) break;  // stopped
    results.push_back(trial.key.empty() ? trial.failed : known_[trial.key]);
  }
  return results;
}

std::vector<Measurer::Trial> Measurer::compile_all(
    std::span<const std::shared_ptr<const RunKernel>> kernels, const Reference& reference,
    const StopAsked& stop) {
  std::vector<Trial> trials(kernels.size());
  const auto compile = [&](size_t i) -> Error {
    TW_ASSIGN(trials[i].objects, builder_.compile(*kernels[i]));
    TW_ASSIGN(trials[i].job, job_of(*kernels[i], reference));
    std::string code;
    for (const CandidateObject& object : trials[i].objects) code += object.code;
    trials[i].key = short_hash(code);
    for (const int64_t symbol : reference.symbols) trials[i].key += "," + std::to_string(symbol);
    return Error::success();
  };
  llvm::cantFail(parallel_for(options_.jobs, kernels.size(), [&](size_t i) -> Error {
    trials[i].left = stop && stop();
    if (trials[i].left) return Error::success();
    if (Error error = compile(i)) trials[i].fail(std::move(error));
    return Error::success();
  }));
  counts_.candidates += static_cast<int64_t>(kernels.size());
  return trials;
}

// Links the candidates whose code has not been timed, once for each code.
std::vector<Measurer::Trial*> Measurer::link_new(std::vector<Trial>& trials) {
  std::vector<Trial*> fresh;
  std::set<std::string> seen;
  for (Trial& trial : trials) {
    if (trial.key.empty()) continue;
    if (known_.count(trial.key) || seen.count(trial.key)) {
      ++counts_.same_code;
      continue;
    }
    if (Error error = add_library(trial.job, builder_, trial.objects)) {
      trial.fail(std::move(error));
      continue;
    }
    seen.insert(trial.key);
    fresh.push_back(&trial);
  }
  counts_.timed += static_cast<int64_t>(fresh.size());
  return fresh;
}

// One after the other, so that each job knows the best time so far
void Measurer::time_all(const std::vector<Trial*>& fresh, const StopAsked& stop) {
  double fastest = best_;
  for (const Trial* trial : fresh) {
    if (stop && stop()) return;
    MeasureJob job = trial->job;
    job.limits = options_.limits;
    if (fastest < kNever) job.limits.best = fastest;
    MeasureResult& known = known_[trial->key] = transport_.run({&job, 1}).front();
    known.code = trial->key;
    fastest = std::min(fastest, seconds_of(known));
  }
}

void Measurer::check_best(std::vector<Trial*> fresh, const Reference& reference) {
  // Drops candidates that were not timed because the search was stopped.
  std::erase_if(fresh, [&](const Trial* trial) { return !known_.contains(trial->key); });
  std::ranges::sort(fresh, {}, [&](const Trial* trial) {
    return std::pair(seconds_of(known_[trial->key]), trial);
  });
  for (const Trial* trial : fresh) {
    MeasureResult& result = known_[trial->key];
    const double seconds = seconds_of(result);
    if (seconds >= best_) return;
    if (!reference.outputs.empty()) {
      ++counts_.checked;
      MeasureJob job = trial->job;
      job.limits = options_.limits;
      job.limits.most_samples = 0;
      job.expected = reference.outputs;
      std::vector<MeasureResult> checked = transport_.run({&job, 1});
      if (checked.front().status != Status::ok) {
        result = std::move(checked.front());
        continue;
      }
    }
    best_ = seconds;
    return;
  }
}

}  // namespace tw
