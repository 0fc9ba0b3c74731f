#include "autotune/measure/task_measurer.h"

#include <algorithm>
#include <cmath>

#include "autotune/measure/cycles.h"
#include "autotune/measure/message.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "program/place_groups.h"

namespace tw {
namespace {

constexpr int kSamplesInTurn = 3;

MeasureResult compile_failure(const std::string& error) {
  MeasureResult result;
  result.status = Status::compile_error;
  result.error = one_line(error);
  return result;
}

}  // namespace

TaskMeasurer::TaskMeasurer(const MeasuringPlace& place, std::shared_ptr<Transport> process,
                           const Task& task, const MeasureSettings& settings)
    : place_(place), process_(std::move(process)), task_(task), settings_(settings) {}

Expected<const CandidateBuilder*> TaskMeasurer::builder() {
  if (!builder_) { TW_ASSIGN(builder_, place_.builder(task_)); }
  return builder_.get();
}

Expected<KernelMeasurer*> TaskMeasurer::measurer() {
  if (measurer_) return measurer_.get();
  if (place_.timed()) {
    TW_ASSIGN(const CandidateBuilder* builder, this->builder());
    measurer_ = std::make_unique<Measurer>(*process_, *builder,
                                           MeasurerOptions{settings_.limits, place_.jobs});
  } else if (place_.estimated) {
    measurer_ = std::make_unique<EstimateMeasurer>(place_.estimated, place_.model,
                                                   place_.target().core.clock, place_.jobs);
  } else {
    TW_ASSIGN(measurer_,
              CycleMeasurer::create(place_.device, place_.target(),
                                    constants_of(task_.variants.front().lowered), place_.jobs));
  }
  return measurer_.get();
}

// Symbols are 1.
Reference TaskMeasurer::inputs(size_t symbols) const {
  return {
      std::vector<int64_t>(symbols, 1), settings_.seed, {}, place_.threads, task_.weights_between};
}

Error TaskMeasurer::compare_with(int variant, const RunKernel& usual) {
  if (!place_.timed()) return measurer().takeError();
  TW_ASSIGN(const CandidateBuilder* builder, this->builder());
  TW_ASSIGN(references_[variant],
            reference_outputs(usual, inputs(usual.kernel.symbols.size()), *builder, *process_));
  return Error::success();
}

Error TaskMeasurer::refer_to_default(int variant) {
  const LoweredGroup& lowered = task_.variants[static_cast<size_t>(variant)].lowered;
  TW_ASSIGN(const Schedule schedule, default_schedule(lowered, place_.target()));
  TW_ASSIGN(const RunKernel usual, scheduled_run(lowered, schedule, place_.target()));
  return compare_with(variant, usual);
}

Expected<MeasureJob> TaskMeasurer::job(const RunKernel& run) {
  TW_ASSIGN(const CandidateBuilder* builder, this->builder());
  return job_of(run, inputs(run.kernel.symbols.size()), *builder);
}

std::optional<PairedGain> TaskMeasurer::in_turns(const Candidate& by_default,
                                                 const Candidate& tuned) {
  if (!place_.timed()) return std::nullopt;
  const auto short_job = [&](const Candidate& candidate) -> std::optional<MeasureJob> {
    Expected<MeasureJob> made = job(*candidate.run);
    if (!made) {  // it was measured before, so this one measurement is all that is lost
      llvm::consumeError(made.takeError());
      return std::nullopt;
    }
    made->limits.least_time = 0, made->limits.most_samples = kSamplesInTurn;
    return std::move(*made);
  };
  if (!usual_job_) usual_job_ = short_job(by_default);
  const std::optional<MeasureJob> best = short_job(tuned);
  if (!usual_job_ || !best) return std::nullopt;
  std::vector<MeasureJob> jobs;
  for (int turn = 0; turn < kLeastSamples; ++turn) {  // the two take turns in who begins
    jobs.push_back(turn % 2 ? *best : *usual_job_);
    jobs.push_back(turn % 2 ? *usual_job_ : *best);
  }
  const std::vector<MeasureResult> results = process_->run(jobs);
  std::vector<double> first, second;
  for (size_t i = 0; i + 1 < results.size(); i += 2) {
    const bool swapped = i / 2 % 2;
    first.push_back(seconds_of(results[i + swapped]));
    second.push_back(seconds_of(results[i + !swapped]));
    if (!std::isfinite(first.back()) || !std::isfinite(second.back())) return std::nullopt;
  }
  return paired_gain(first, second);
}

std::vector<MeasureResult> TaskMeasurer::measure(std::span<const Candidate> candidates,
                                                 const StopAsked& stop) {
  std::vector<MeasureResult> out;
  for (size_t at = 0; at < candidates.size();) {
    if (stop && stop()) break;
    size_t end = at + 1;  // candidates of one variant have one reference
    while (end < candidates.size() && end - at < settings_.together &&
           candidates[end].variant == candidates[at].variant)
      ++end;
    for (MeasureResult& result : measure_variant(candidates.subspan(at, end - at), stop))
      out.push_back(std::move(result));
    if (out.size() < end) break;  // stopped
    at = end;
  }
  return out;
}

std::vector<MeasureResult> TaskMeasurer::measure_variant(std::span<const Candidate> candidates,
                                                         const StopAsked& stop) {
  const int variant = candidates.front().variant;
  if (place_.timed() && !references_.contains(variant) && !failures_.contains(variant))
    if (Error error = refer_to_default(variant))
      failures_[variant] = "the default schedule gives nothing to compare with: " +
                           error_text(std::move(error));
  if (const auto failed = failures_.find(variant); failed != failures_.end()) {
    MeasureResult result = compile_failure(failed->second);
    result.lost = process_->gone();
    return std::vector<MeasureResult>(candidates.size(), result);
  }
  Expected<KernelMeasurer*> measurer = this->measurer();
  if (!measurer)
    return std::vector<MeasureResult>(candidates.size(),
                                      compile_failure(error_text(measurer.takeError())));
  std::vector<std::shared_ptr<const RunKernel>> kernels;
  for (const Candidate& candidate : candidates) kernels.push_back(candidate.run);
  return (*measurer)->measure(kernels, references_[variant], stop);
}

}  // namespace tw
