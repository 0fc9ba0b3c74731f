#include "cli/tune_services.h"

#include <algorithm>
#include <ctime>
#include <map>

#include "autotune/measure/cycles.h"
#include "autotune/measure/local.h"
#include "autotune/measure/session.h"
#include "autotune/spaces/space.h"
#include "backends/backend.h"
#include "cli/candidate.h"
#include "frontend/frontend.h"
#include "passes/place_groups.h"

namespace tw {
namespace {

constexpr size_t kTogether = 8;   // candidates between two looks at the interrupt

Error runs_here(const Target& target) {
  const Target host = host_target();
  if (target.arch() != host.arch())
    return make_error(DiagCode::unsupported, "target '{0}' is for {1}, and kernels are measured on this machine, {2}", target.name, arch_name(target.arch()), arch_name(host.arch()));
  std::string missing;
  for (const std::string& feature : target.features)
    if (!host.has(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  if (missing.empty()) return Error::success();
  return make_error(DiagCode::unsupported, "target '{0}' wants features that this machine, where kernels are measured, does not have: {1}", target.name, missing);
}

MeasureResult no_reference(const std::string& error) {
  MeasureResult result;
  result.status = Status::compile_error;
  result.error = "the default schedule gives nothing to compare with: " + error;
  std::ranges::replace(result.error, '\n', ' ');
  return result;
}

// All measurements of a network: one process that runs candidates, a measurer a task, a reference a variant.
class Measuring {
 public:
  Measuring(const Target& target, std::unique_ptr<Transport> transport, CandidateBuilder builder, const TuneSources& sources)
      : target_(target), transport_(std::move(transport)), builder_(std::move(builder)), sources_(sources) {}

  std::vector<MeasureResult> run(const Task& task, std::span<const Candidate> candidates, const std::atomic<bool>* stop) {
    std::vector<MeasureResult> out;
    for (size_t at = 0; at < candidates.size();) {
      if (stop && stop->load(std::memory_order_relaxed)) break;
      size_t end = at + 1;   // of one variant, whose outputs are compared with the same
      while (end < candidates.size() && end - at < kTogether && candidates[end].variant == candidates[at].variant) ++end;
      for (MeasureResult& result : run_variant(task, candidates.subspan(at, end - at))) out.push_back(std::move(result));
      at = end;
    }
    return out;
  }

 private:
  std::vector<MeasureResult> run_variant(const Task& task, std::span<const Candidate> candidates) {
    const std::pair<std::string, int> key{task.key, candidates.front().variant};
    if (!references_.count(key) && !errors_.count(key)) {
      if (Expected<Reference> made = make_reference(task.variants[static_cast<size_t>(key.second)])) references_.emplace(key, std::move(*made));
      else errors_.emplace(key, error_text(made.takeError()));
    }
    if (const auto failed = errors_.find(key); failed != errors_.end()) return std::vector<MeasureResult>(candidates.size(), no_reference(failed->second));
    std::vector<std::shared_ptr<const Kernel>> kernels;
    for (const Candidate& candidate : candidates) kernels.push_back(candidate.kernel);
    auto& measurer = measurers_[task.key];
    if (!measurer) measurer = std::make_unique<Measurer>(*transport_, builder_, MeasurerOptions{.jobs = sources_.jobs});
    return measurer->measure(kernels, references_.at(key));
  }

  // What the default schedule computes; free dimensions are 1.
  Expected<Reference> make_reference(const Variant& variant) {
    const Kernel& lowered = variant.lowered.kernel;
    TW_ASSIGN(const Schedule schedule, default_schedule(lowered, variant.lowered.family, target_));
    TW_ASSIGN(const Kernel scheduled, tw::apply(lowered, schedule, &target_));
    return reference_outputs(scheduled, {std::vector<int64_t>(lowered.symbols.size(), 1), sources_.seed, {}}, builder_, *transport_);
  }

  const Target& target_;
  std::unique_ptr<Transport> transport_;
  CandidateBuilder builder_;
  TuneSources sources_;
  std::map<std::string, std::unique_ptr<Measurer>> measurers_;                // by the task's key
  std::map<std::pair<std::string, int>, Reference> references_;               // by key and variant
  std::map<std::pair<std::string, int>, std::string> errors_;                 // of those that cannot be made
};

using MeasureTask = std::function<std::vector<MeasureResult>(const Task&, std::span<const Candidate>)>;

Expected<MeasureTask> on_processor(const Target& target, const TuneSources& sources, const std::atomic<bool>* stop) {
  TW_TRY(runs_here(target));
  TW_ASSIGN(CandidateBuilder builder, candidate_builder(target));
  TW_ASSIGN(std::unique_ptr<Transport> transport, LocalTransport::create());
  const auto measuring = std::make_shared<Measuring>(target, std::move(transport), std::move(builder), sources);
  return [measuring, stop](const Task& task, std::span<const Candidate> candidates) { return measuring->run(task, candidates, stop); };
}

// Devices have one variant of each task: the direct algorithm.
Expected<MeasureTask> by_cycles(const Target& device, const TuneSources& sources) {
  TW_ASSIGN(std::unique_ptr<DeviceBackend> made, make_device_backend(device));
  const std::shared_ptr<const DeviceBackend> backend = std::move(made);
  return [backend, &device, jobs = sources.jobs](const Task& task, std::span<const Candidate> candidates) {
    std::vector<std::shared_ptr<const Kernel>> kernels;
    for (const Candidate& candidate : candidates) kernels.push_back(candidate.kernel);
    return CycleMeasurer(backend, device, constants_of(task.variants.front().lowered), jobs).measure(kernels, {});
  };
}

}  // namespace

Error keep_runnable(std::vector<Task>& tasks, const Target& device) {
  TW_ASSIGN(const std::unique_ptr<DeviceBackend> backend, make_device_backend(device));
  const auto runs = [&](const LoweredGroup& lowered) -> Error {
    TW_ASSIGN(const Schedule schedule, default_schedule(lowered.kernel, lowered.family, device));
    TW_ASSIGN(const Kernel kernel, tw::apply(lowered.kernel, schedule, &device));
    TW_TRY(backend->supports(kernel));
    return backend->accepts(kernel, constants_of(lowered));
  };
  std::erase_if(tasks, [&](const Task& task) {
    Error error = runs(task.variants.front().lowered);
    const bool refused = bool(error);
    llvm::consumeError(std::move(error));
    return refused;
  });
  return Error::success();
}

Expected<NetworkServices> tune_services(const Target& target, const TuneSources& sources, TuningLog* log, const std::atomic<bool>* stop) {
  NetworkServices services;
  TW_ASSIGN(services.measure, target.driver.empty() ? on_processor(target, sources, stop) : by_cycles(target, sources));
  services.space = [&target, sources](const Task& task) {
    return sources.generated ? generated_space(task, target, {sources.rules}) : template_space(task, target, {sources.rules});
  };
  if (!log) return services;
  services.known = [log](const RecordKey& key) -> Expected<std::vector<Record>> {
    LogFilter filter;
    filter.task = key.task, filter.target = key.target, filter.threads = key.threads, filter.language = key.language;
    return log->all(filter);
  };
  services.store = [log](Record record) -> Error {
    record.tool = std::string("tilewright ") + TW_VERSION;
    record.time = static_cast<int64_t>(std::time(nullptr));
    return log->add(record).takeError();
  };
  return services;
}

}  // namespace tw
