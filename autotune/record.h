// The known facts about one schedule of one task: the value in a tuning log, the same on every
// machine that shares the log.
#pragma once
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/dates.h"
#include "support/diag.h"

namespace tw {

enum class Status : uint8_t { ok, illegal, compile_error, timeout, wrong_result, crashed };
inline constexpr int kStatusCount = 6;
// "ok", "illegal", "compile-error", ...
const char* status_name(Status s);
std::optional<Status> status_from_name(std::string_view name);

// Version of the schedule text; raised only when existing text changes its meaning
constexpr int kLanguageVersion = 2;

struct RecordKey {
  std::string task, target;  // task_key, target_key
  int threads = 1;
  std::string regime = "cold-weights";  // contents of the caches when a measured run begins
  int language = kLanguageVersion;
  auto operator<=>(const RecordKey&) const = default;
};

struct Record {
  RecordKey key;
  // kernel_hash identifies the lowered kernel that the schedule rewrites; schedule is a text of
  // ir/schedule.
  std::string algorithm, kernel_hash, schedule;
  std::vector<double> seconds;  // all samples; empty unless ok
  Status status = Status::ok;
  std::string error;         // one line
  std::string device, tool;  // device: fingerprint of the measuring machine
  int64_t time = 0;          // seconds since 1970
  // Describes kernel and point, for similar kernels (autotune/transfer.h); not part of the identity
  std::string about = {};
  // A network with it was not faster as a whole. Choices pass over it, and models learn from it.
  // Not part of the identity.
  bool rejected = false;
  bool operator==(const Record&) const = default;
};
// The time of candidates without one
inline constexpr double kInfiniteSeconds = std::numeric_limits<double>::infinity();
double median_seconds(const Record& record);  // infinite without samples

// Keeps, for each schedule of a kernel and each status, the last measurement (of the same second,
// the slowest), in order of the medians. The best of many measurements is measured again before it
// is trusted.
std::vector<Record> latest(std::vector<Record> records);

// True when a schedule with this time is to replace the default one: its gain exceeds the part that
// the best of many measurements owes to chance.
inline bool is_gain(double seconds, double by_default) { return seconds < 0.98 * by_default; }

// Checks the rules of a log: keys of the right form, samples exactly when ok, positive and finite,
// texts of bounded length.
Error check(const Record& record);

// A line of JSON without a newline, equal for equal records. The hash of the line without `about`
// and `rejected` is the record's identity.
std::string print(const Record& record);
Expected<Record> parse_record(std::string_view line, const std::string& file);
std::string record_id(const Record& record);  // 32 hex digits

}  // namespace tw
