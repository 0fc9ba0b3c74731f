// What the tuning log keeps of one trial.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw {

enum class Status : uint8_t { ok, illegal, compile_error, timeout, wrong_result, crashed };
const char* status_name(Status s);
std::optional<Status> status_from_name(std::string_view name);
constexpr int kLanguageVersion = 1;          // of the schedule text; raised only when existing text changes meaning
struct RecordKey { std::string task, target; int threads = 1; std::string regime = "cold-weights"; int language = kLanguageVersion; auto operator<=>(const RecordKey&) const = default; };
struct Record {
  RecordKey key;
  std::string algorithm, kernel_hash, schedule;   // kernel_hash: of the lowered kernel that the schedule text rewrites; schedule: text of ir/schedule
  std::vector<double> seconds;                    // all samples; empty unless ok
  Status status = Status::ok; std::string error;  // error: one line
  std::string device, tool; int64_t time = 0;     // device: fingerprint of the machine measured on; time: seconds since 1970
};
double median_seconds(const Record& record);

}  // namespace tw
