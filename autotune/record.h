// What is known of one schedule of one task: the value of the tuning log, the same on every machine
// that shares it.
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

// Of the schedule text; raised only when existing text changes meaning
constexpr int kLanguageVersion = 1;

struct RecordKey {
  std::string task, target;  // task_key, target_key
  int threads = 1;
  std::string regime = "cold-weights";  // what caches hold when a measured run begins
  int language = kLanguageVersion;
  auto operator<=>(const RecordKey&) const = default;
};

struct Record {
  RecordKey key;
  // kernel_hash: of the lowered kernel that the schedule text rewrites; schedule: text of
  // ir/schedule
  std::string algorithm, kernel_hash, schedule;
  std::vector<double> seconds;  // all samples; empty unless ok
  Status status = Status::ok;
  std::string error;         // one line
  std::string device, tool;  // device: fingerprint of the machine measured on
  int64_t time = 0;          // seconds since 1970
  // Of the kernel and the point, for kernels like it (autotune/transfer.h); no part of the identity
  std::string about = {};
  bool operator==(const Record&) const = default;
};
// The time of what has none
inline constexpr double kInfiniteSeconds = std::numeric_limits<double>::infinity();
double median_seconds(const Record& record);  // infinite without samples

// Of several measurements of one schedule for one kernel the last of each status (of one second the
// slowest), in the order of their medians: what was the best of many is measured again before it is
// trusted.
std::vector<Record> latest(std::vector<Record> records);

// Whether a schedule measured so is to replace the default one: it gains more than what the best of
// many measurements owes to chance.
inline bool is_gain(double seconds, double by_default) { return seconds < 0.98 * by_default; }

// What a log may hold: keys of the right form, samples exactly when ok, positive and finite, texts
// of bounded length.
Error check(const Record& record);

// One line of JSON without a newline, equal for equal records; the identity of a record is its hash
// without `about`.
std::string print(const Record& record);
Expected<Record> parse_record(std::string_view line, const std::string& file);
std::string record_id(const Record& record);  // 32 hex digits

}  // namespace tw
