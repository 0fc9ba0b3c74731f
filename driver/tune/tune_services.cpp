#include "driver/tune/tune_services.h"

#include <ctime>
#include <map>

#include "autotune/measure/task_measurer.h"

namespace tw {
namespace {

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
  TW_ASSIGN(MeasuringPlace made, measuring_place(target, {.threads = sources.threads,
                                                          .jobs = sources.jobs,
                                                          .worker = sources.worker}));
  const auto measured = std::make_shared<const MeasuringPlace>(std::move(made));
  TW_ASSIGN(const std::shared_ptr<Transport> process, measured->process());
  out.exact = measured->predicts_cycles();
  using Measurers = std::map<std::string, std::unique_ptr<TaskMeasurer>>;  // by the task's key
  services.measure =
      [measured, process, seed = sources.seed, measurers = std::make_shared<Measurers>()](
          const Task& task, std::span<const Candidate> candidates, const StopAsked& stop) {
        std::unique_ptr<TaskMeasurer>& measurer = (*measurers)[task.key];
        if (!measurer)
          measurer = std::make_unique<TaskMeasurer>(*measured, process, task,
                                                    MeasureSettings{.seed = seed});
        return measurer->measure(candidates, stop);
      };
  if (measured->device) out.runs = [measured](const Task& task) { return measured->runs(task); };
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
