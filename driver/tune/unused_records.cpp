#include "driver/tune/unused_records.h"

namespace tw {
namespace {

struct Unused {
  int64_t records = 0;
  std::set<std::string> tasks, details;
};

std::string line_of(const Unused& unused, const std::string& reason, size_t tasks) {
  if (unused.records == 0) return "";
  std::string text = std::to_string(unused.records) +
                     (unused.records == 1 ? " record" : " records") + " of " +
                     std::to_string(unused.tasks.size()) + " of its " + std::to_string(tasks) +
                     " kernels " + reason;
  for (const std::string& detail : unused.details)
    text += (detail == *unused.details.begin() ? " (" : ", ") + detail;
  return text + ")";
}

}  // namespace

Expected<std::string> unused_records(TuningLog& log, const std::set<std::string>& tasks,
                                     const std::set<std::string>& targets, int threads) {
  Unused elsewhere, other_threads, other_language;
  const auto count = [](Unused& unused, const Record& record, std::string detail) {
    ++unused.records;
    unused.tasks.insert(record.key.task);
    unused.details.insert(std::move(detail));
  };
  for (const std::string& task : tasks)
    TW_TRY(log.each({.task = task}, [&](const Record& r) {
      if (!targets.contains(r.key.target))
        count(elsewhere, r, "target " + r.key.target + ", measured on " + r.device);
      else if (r.key.language != kLanguageVersion)
        count(other_language, r, "version " + std::to_string(r.key.language));
      else if (r.key.threads != threads)
        count(other_threads, r, "--threads " + std::to_string(r.key.threads));
      return Error::success();
    }));
  std::string text;
  for (const std::string& line :
       {line_of(elsewhere,
                "are of another chip or of another description of it, whose times say nothing of "
                "this one",
                tasks.size()),
        line_of(other_threads, "were measured with other threads", tasks.size()),
        line_of(
            other_language,
            "are of another version of the schedule language: 'tilewright tune' measures anew, and "
            "'tilewright log prune --other-languages' drops them",
            tasks.size())})
    if (!line.empty()) text += (text.empty() ? "'" + log.path() + "': " : "; ") + line;
  return text;
}

}  // namespace tw
