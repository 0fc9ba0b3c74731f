#include "autotune/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "autotune/median.h"
#include "support/hash.h"
#include "support/json.h"

namespace tw {
namespace {

constexpr std::array<const char*, kStatusCount> kStatusNames = {
    "ok", "illegal", "compile-error", "timeout", "wrong-result", "crashed"};
constexpr size_t kMostText = 1 << 20, kMostLine = 4096, kMostSamples = 100000;

bool is_key(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// True for a word or a line that every reader prints unchanged.
bool is_line(const std::string& text) {
  return text.size() <= kMostLine && std::ranges::none_of(text, [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

}  // namespace

const char* status_name(Status s) { return kStatusNames[static_cast<size_t>(s)]; }

std::optional<Status> status_from_name(std::string_view name) {
  for (size_t i = 0; i < kStatusNames.size(); ++i)
    if (name == kStatusNames[i]) return static_cast<Status>(i);
  return std::nullopt;
}

double median_seconds(const Record& record) {
  return record.seconds.empty() ? std::numeric_limits<double>::infinity()
                                : median_of(record.seconds);
}

std::vector<Record> latest(std::vector<Record> records) {
  struct Timed {
    double median;
    Record record;
  };  // a median sorts the samples, so it is computed once for each record
  std::vector<Timed> timed;
  for (Record& r : records) {
    const double median = median_seconds(r);
    timed.push_back({median, std::move(r)});
  }
  const auto name = [](const Timed& t) {
    return std::tie(t.record.key, t.record.kernel_hash, t.record.schedule, t.record.status);
  };
  std::ranges::sort(timed, [&](const Timed& a, const Timed& b) {
    return std::tuple(name(a), -a.record.time, -a.median) <
           std::tuple(name(b), -b.record.time, -b.median);
  });
  const auto same = std::ranges::unique(
      timed, [&](const Timed& a, const Timed& b) { return name(a) == name(b); });
  timed.erase(same.begin(), same.end());
  std::ranges::stable_sort(timed, {}, &Timed::median);
  records.clear();
  for (Timed& t : timed) records.push_back(std::move(t.record));
  return records;
}

Error check(const Record& r) {
  auto wrong = [](const char* what) {
    return make_error(DiagCode::invalid_argument, "not a tuning record: {0}", what);
  };
  if (!is_key(r.key.task) || !is_key(r.key.target))
    return wrong("task and target are 16 hex digits");
  if (!is_key(r.kernel_hash)) return wrong("the kernel is 16 hex digits");
  if (r.key.threads < 1 || r.key.threads > 65536) return wrong("threads are 1 to 65536");
  if (r.key.language < 1) return wrong("the language version is 1 or more");
  if (r.key.regime.empty() || r.algorithm.empty())
    return wrong("the cache regime and the algorithm have names");
  for (const std::string* text :
       {&r.key.regime, &r.algorithm, &r.error, &r.device, &r.tool, &r.about})
    if (!is_line(*text)) return wrong("names and messages are one line of up to 4096 bytes");
  if (r.schedule.size() > kMostText) return wrong("the schedule is longer than 1 MiB");
  if (r.schedule.find('\0') != std::string::npos) return wrong("the schedule holds a zero byte");
  if (r.seconds.empty() == (r.status == Status::ok))
    return wrong("there are samples exactly when the status is ok");
  if (r.seconds.size() > kMostSamples) return wrong("there are more than 100000 samples");
  if (!std::ranges::all_of(r.seconds, [](double s) { return std::isfinite(s) && s > 0; }))
    return wrong("samples are positive numbers of seconds");
  return Error::success();
}

std::string print(const Record& r) {
  Json::Object out{{"task", r.key.task},
                   {"target", r.key.target},
                   {"threads", r.key.threads},
                   {"regime", r.key.regime},
                   {"language", r.key.language},
                   {"algorithm", r.algorithm},
                   {"kernel", r.kernel_hash},
                   {"schedule", r.schedule},
                   {"seconds", json_array(r.seconds)},
                   {"status", status_name(r.status)},
                   {"error", r.error},
                   {"device", r.device},
                   {"tool", r.tool},
                   {"time", r.time}};
  if (!r.about.empty()) out.push_back({"about", r.about});
  if (r.rejected) out.push_back({"rejected", true});
  return dump(out, -1);
}

Expected<Record> parse_record(std::string_view line, const std::string& file) {
  TW_ASSIGN(const Json json, parse_json(line, file));
  if (!json.object())
    return make_error(DiagCode::parse, "'{0}': a tuning record is a JSON object", file);
  Record r;
  const std::optional<Status> status = status_from_name(json["status"].text_or_empty());
  if (!status)
    return make_error(DiagCode::parse,
                      "'{0}': a tuning record's status is '{1}'; known: ok, illegal, "
                      "compile-error, timeout, wrong-result, crashed",
                      file, json["status"].text_or_empty());
  const int64_t threads = json["threads"].integer_or(0), language = json["language"].integer_or(0);
  constexpr int64_t most = std::numeric_limits<int>::max();
  r.key = {json["task"].text_or_empty(), json["target"].text_or_empty(),
           static_cast<int>(std::clamp<int64_t>(threads, 0, most)), json["regime"].text_or_empty(),
           static_cast<int>(std::clamp<int64_t>(language, 0, most))};
  r.algorithm = json["algorithm"].text_or_empty();
  r.kernel_hash = json["kernel"].text_or_empty();
  r.schedule = json["schedule"].text_or_empty();
  for (const Json& sample : json["seconds"].items()) r.seconds.push_back(sample.number_or(0));
  r.status = *status;
  r.error = json["error"].text_or_empty();
  r.device = json["device"].text_or_empty();
  r.tool = json["tool"].text_or_empty();
  r.time = json["time"].integer_or(0);
  r.about = json["about"].text_or_empty();
  r.rejected = json["rejected"].boolean() && *json["rejected"].boolean();
  if (Error error = check(r))
    return make_error(DiagCode::parse, "'{0}': {1}", file, error_text(std::move(error)));
  return r;
}

std::string record_id(const Record& record) {
  if (record.about.empty() && !record.rejected) return sha256_hex(print(record)).substr(0, 32);
  Record bare = record;
  bare.about.clear();
  bare.rejected = false;
  return record_id(bare);
}

}  // namespace tw
