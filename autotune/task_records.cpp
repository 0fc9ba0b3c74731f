#include "autotune/task_records.h"

#include <algorithm>
#include <ctime>
#include <set>

#include "autotune/transfer.h"

namespace tw {

TaskRecords::TaskRecords(TuningLog* log, const Task& task, const Space& space, RecordKey key)
    : log_(log), task_(task), space_(space), key_(std::move(key)) {
  for (const Variant& v : task.variants) hashes_.push_back(definition_hash(v.lowered));
}

Error TaskRecords::keep_texts() {
  if (!log_) return Error::success();
  for (size_t v = 0; v < hashes_.size(); ++v)
    TW_TRY(
        log_->keep(TuningLog::Text::kernel, hashes_[v], print(task_.variants[v].lowered.kernel)));
  if (task_.text.empty()) return Error::success();
  return log_->keep(TuningLog::Text::task, task_.key, task_.text);
}

Expected<std::vector<KnownResult>> TaskRecords::known() const {
  std::vector<KnownResult> known;
  if (!log_) return known;
  LogFilter filter;
  filter.task = key_.task, filter.target = key_.target, filter.threads = key_.threads,
  filter.language = key_.language;
  std::set<std::pair<std::string, std::string>> counting;  // kernels and schedules
  for (const bool rejected : {false, true}) {
    filter.rejected = rejected;
    TW_ASSIGN(std::vector<Record> records, log_->all(filter));
    for (const Record& r : latest(std::move(records))) {
      const auto hash = std::ranges::find(hashes_, r.kernel_hash);
      if (hash == hashes_.end()) continue;
      if (rejected && counting.contains({r.kernel_hash, r.schedule})) continue;
      if (!rejected) counting.emplace(r.kernel_hash, r.schedule);
      known.push_back({static_cast<int>(hash - hashes_.begin()),
                       r.schedule,
                       {r.status, r.seconds, r.error, r.device, false},
                       rejected});
    }
  }
  return known;
}

Record TaskRecords::record_of(const Candidate& candidate, const MeasureResult& result,
                              bool by_default) const {
  const auto variant = static_cast<size_t>(candidate.variant);
  Record record;
  record.key = key_;
  record.algorithm = algorithm_name(task_.variants[variant].algorithm);
  record.kernel_hash = hashes_[variant];
  record.schedule = print(candidate.schedule);
  record.seconds = result.status == Status::ok ? result.seconds : std::vector<double>();
  record.status = result.status;
  record.error = result.error;
  record.device = result.device;
  if (in_space(candidate.point) || by_default)
    record.about = print(RecordNote{shape_of(task_.variants[variant].lowered),
                                    in_space(candidate.point) ? space_.print(candidate.point) : "",
                                    by_default});
  record.tool = std::string("tilewright ") + TW_VERSION;
  record.time = static_cast<int64_t>(std::time(nullptr));
  return record;
}

Error TaskRecords::add(const Candidate& candidate, const MeasureResult& result, bool by_default) {
  if (!log_ || result.lost) return Error::success();
  return log_->add(record_of(candidate, result, by_default)).takeError();
}

}  // namespace tw
