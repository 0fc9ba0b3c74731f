#include "driver/tune/tune_services.h"

#include <algorithm>
#include <ctime>
#include <map>

#include "autotune/measure/cycles.h"
#include "autotune/measure/session.h"
#include "driver/tune/measuring_place.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "program/place_groups.h"

namespace tw {
namespace {

constexpr size_t kTogether = 8;  // candidates between two looks at the interrupt

MeasureResult no_reference(const std::string& error) {
  MeasureResult result;
  result.status = Status::compile_error;
  result.error = "the default schedule gives nothing to compare with: " + error;
  std::ranges::replace(result.error, '\n', ' ');
  return result;
}

// All measurements of a network: one process that runs candidates, a measurer for each task, a
// reference for each variant
class Measuring {
 public:
  Measuring(MeasuringPlace place, std::unique_ptr<Transport> process, const TuneSources& sources)
      : place_(std::move(place)), transport_(std::move(process)), sources_(sources) {
    if (place_.jobs > 0) sources_.jobs = place_.jobs;
    sources_.threads = place_.threads;
  }

  std::vector<MeasureResult> run(const Task& task, std::span<const Candidate> candidates,
                                 const StopAsked& stop) {
    std::vector<MeasureResult> out;
    for (size_t at = 0; at < candidates.size();) {
      if (stop && stop()) break;
      size_t end = at + 1;  // candidates of one variant have one reference
      while (end < candidates.size() && end - at < kTogether &&
             candidates[end].variant == candidates[at].variant)
        ++end;
      for (MeasureResult& result : run_variant(task, candidates.subspan(at, end - at), stop))
        out.push_back(std::move(result));
      if (out.size() < end) break;  // stopped
      at = end;
    }
    return out;
  }

 private:
  std::vector<MeasureResult> run_variant(const Task& task, std::span<const Candidate> candidates,
                                         const StopAsked& stop) {
    const std::pair<std::string, int> key{task.key, candidates.front().variant};
    if (!references_.count(key) && !errors_.count(key)) {
      if (Expected<Reference> made = make_reference(task,
                                                    task.variants[static_cast<size_t>(key.second)]))
        references_.emplace(key, std::move(*made));
      else errors_.emplace(key, error_text(made.takeError()));
    }
    if (const auto failed = errors_.find(key); failed != errors_.end()) {
      MeasureResult result = no_reference(failed->second);
      result.lost = transport_->gone();
      return std::vector<MeasureResult>(candidates.size(), result);
    }
    std::vector<std::shared_ptr<const RunKernel>> kernels;
    for (const Candidate& candidate : candidates) kernels.push_back(candidate.run);
    auto& measurer = measurers_[task.key];
    if (!measurer)
      measurer = std::make_unique<Measurer>(*transport_, builders_.at(task.key),
                                            MeasurerOptions{.jobs = sources_.jobs});
    return measurer->measure(kernels, references_.at(key), stop);
  }

  // The outputs of the default schedule; free dimensions are 1.
  Expected<Reference> make_reference(const Task& task, const Variant& variant) {
    if (!builders_.contains(task.key)) {
      TW_ASSIGN(CandidateBuilder builder, place_.builder(task));
      builders_.emplace(task.key, std::move(builder));
    }
    const LoweredGroup& lowered = variant.lowered;
    TW_ASSIGN(const Schedule schedule, default_schedule(lowered, *place_.target));
    TW_ASSIGN(const RunKernel scheduled, scheduled_run(lowered, schedule, *place_.target));
    return reference_outputs(scheduled,
                             {std::vector<int64_t>(lowered.kernel.symbols.size(), 1),
                              sources_.seed,
                              {},
                              sources_.threads,
                              task.weights_between},
                             builders_.at(task.key), *transport_);
  }

  MeasuringPlace place_;
  std::unique_ptr<Transport> transport_;
  TuneSources sources_;
  std::map<std::string, CandidateBuilder> builders_;             // by the task's key
  std::map<std::string, std::unique_ptr<Measurer>> measurers_;   // by the task's key
  std::map<std::pair<std::string, int>, Reference> references_;  // by key and variant
  // Reasons why a reference cannot be made
  std::map<std::pair<std::string, int>, std::string> errors_;
};

using MeasureTask = std::function<std::vector<MeasureResult>(
    const Task&, std::span<const Candidate>, const StopAsked&)>;

Expected<MeasureTask> timed(const MeasuringPlace& place, const TuneSources& sources) {
  TW_ASSIGN(std::unique_ptr<Transport> process, place.process());
  const auto measuring = std::make_shared<Measuring>(place, std::move(process), sources);
  return [measuring](const Task& task, std::span<const Candidate> candidates,
                     const StopAsked& stop) { return measuring->run(task, candidates, stop); };
}

// Devices whose cycles are predicted have one variant of each task: the direct algorithm.
MeasureTask by_cycles(const MeasuringPlace& place, const TuneSources& sources) {
  using Measurers = std::map<std::string, std::unique_ptr<CycleMeasurer>>;  // by the task's key
  return [place, jobs = sources.jobs, measurers = std::make_shared<Measurers>()](
             const Task& task, std::span<const Candidate> candidates, const StopAsked& stop) {
    std::unique_ptr<CycleMeasurer>& measurer = (*measurers)[task.key];
    if (!measurer) {
      auto made = CycleMeasurer::create(place.device, *place.target,
                                        constants_of(task.variants.front().lowered), jobs);
      if (!made) {
        MeasureResult failed;
        failed.status = Status::compile_error, failed.error = error_text(made.takeError());
        return std::vector<MeasureResult>(candidates.size(), failed);
      }
      measurer = std::move(*made);
    }
    std::vector<std::shared_ptr<const RunKernel>> kernels;
    for (const Candidate& candidate : candidates) kernels.push_back(candidate.run);
    return measurer->measure(kernels, {}, stop);
  };
}

Error keep_texts(TuningLog& log, const Task& task) {
  for (const Variant& variant : task.variants)
    TW_TRY(log.keep(TuningLog::Text::kernel, definition_hash(variant.lowered),
                    print(variant.lowered.kernel)));
  if (task.text.empty()) return Error::success();
  return log.keep(TuningLog::Text::task, task.key, task.text);
}

}  // namespace

Expected<TuneServices> tune_services(const Target& target, const TuneSources& sources,
                                     TuningLog* log) {
  TuneServices out;
  NetworkServices& services = out.network;
  const Target& place = target.main_device();
  TW_ASSIGN(const MeasuringPlace measured,
            measuring_place(target, sources.threads, sources.worker));
  out.exact = measured.predicts_cycles();
  if (out.exact) {
    services.measure = by_cycles(measured, sources);
  } else {
    TW_ASSIGN(services.measure, timed(measured, sources));
  }
  if (measured.device)
    out.runs = [backend = measured.device, &place](const Task& task) {
      Error error = runs_on(*backend, place, task.variants.front().lowered);
      const bool refused = bool(error);
      llvm::consumeError(std::move(error));
      return !refused;
    };
  services.space = [&place, sources](const Task& task) {
    return sources.generated ? generated_space(task, place, {sources.rules})
                             : template_space(task, place, {sources.rules});
  };
  if (!log) return out;
  services.known = [log](const RecordKey& key) -> Expected<std::vector<Record>> {
    LogFilter filter;
    filter.task = key.task, filter.target = key.target, filter.threads = key.threads,
    filter.language = key.language;
    return log->all(filter);
  };
  services.notes = [log, key = target_key(place), threads = sources.threads] {
    return notes_of(*log, key, threads);
  };
  services.describe = [log](const Task& task) { return keep_texts(*log, task); };
  services.store = [log](Record record) -> Error {
    record.tool = std::string("tilewright ") + TW_VERSION;
    record.time = static_cast<int64_t>(std::time(nullptr));
    return log->add(record).takeError();
  };
  return out;
}

}  // namespace tw
