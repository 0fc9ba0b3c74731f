#include "cli/tune_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "cli/progress.h"
#include "cli/tune_table.h"

namespace tw {
namespace {

constexpr size_t kNamedKernels = 3;  // names in the line of kernels that are not kept
constexpr int kCheckNumbers = 74;    // columns of check_table behind the name

// The seconds before, in and behind the search
std::string time_text(const TuneOutcome& outcome) {
  std::string text = format_seconds(outcome.seconds);
  if (outcome.limit > 0) text += " of " + format_seconds(outcome.limit);
  return text + ": " + format_seconds(outcome.before) + " before the search, " +
         format_seconds(outcome.searched) + " in it, " +
         format_seconds(outcome.seconds - outcome.before - outcome.searched) + " behind";
}

// "1.07 x (1.06 to 1.08), 23.1 -> 21.6 ms"
std::string gain_text(const Comparison& timed) {
  char text[128];
  std::snprintf(text, sizeof text, "%.3f x (%.3f to %.3f), %.4g -> %.4g ms", timed.ratio,
                timed.interval.low, timed.interval.high, timed.first_ms, timed.second_ms);
  return text;
}

std::string limit_text(double limit, double second, const TuneOutcome& outcome) {
  std::string text = "tuning: " + format_seconds(outcome.seconds) +
                     (limit > 0 ? " of " + format_seconds(limit) : "") + ", " +
                     std::to_string(outcome.trials) +
                     (outcome.trials == 1 ? " trial in " : " trials in ") +
                     format_seconds(outcome.searched);
  if (const size_t left = outcome.kernels - outcome.reached - outcome.failures.size(); left > 0)
    text += ", " + std::to_string(left) + " of " + std::to_string(outcome.kernels) +
            " kernels not reached";
  if (const std::string again = to_string(outcome.confirmed); !again.empty()) text += "; " + again;
  return text + "; a second library and the proof took " + format_seconds(second);
}

}  // namespace

std::string to_string(const ConfirmedRecords& confirmed) {
  std::string text;
  if (confirmed.kept + confirmed.refuted > 0)
    text = "measured again: " + std::to_string(confirmed.kept) +
           (confirmed.kept == 1 ? " gain stands, " : " gains stand, ") +
           std::to_string(confirmed.refuted) + (confirmed.refuted == 1 ? " does not" : " do not");
  if (confirmed.left > 0)
    text += (text.empty() ? "not measured again for want of time: "
                          : "; for want of time not measured again: ") +
            std::to_string(confirmed.left) + (confirmed.left == 1 ? " gain" : " gains");
  return text;
}

std::string to_string(const NetworkVerdict& verdict) {
  const std::string name = "whole network";
  std::string text;
  switch (verdict.proved) {
    case Proved::untimed: return name + ": not timed, " + verdict.reason + "\n";
    case Proved::unchanged: return name + ": unchanged, every kernel has the schedule it had\n";
    case Proved::faster: text = gain_text(*verdict.all) + "\n"; break;
    case Proved::same:
      text = gain_text(*verdict.all) + ": no difference that could be seen\n";
      break;
    case Proved::slower: text = gain_text(*verdict.all) + ": slower\n"; break;
  }
  text = name + " " + text;
  if (verdict.rejected.empty()) return text;
  text += "not kept: what was found for " + std::to_string(verdict.rejected.size()) +
          (verdict.rejected.size() == 1 ? " kernel" : " kernels");
  for (size_t i = 0; i < std::min(kNamedKernels, verdict.rejected.size()); ++i)
    text += (i ? ", " : ": ") + verdict.rejected[i].name;
  text += (verdict.rejected.size() > kNamedKernels ? ", ..; " : "; ") +
          std::to_string(verdict.records) +
          (verdict.records == 1 ? " record is marked as rejected\n"
                                : " records are marked as rejected\n");
  return text + (verdict.some ? name + " without that " + gain_text(*verdict.some) + "\n" : "");
}

Json to_json(const NetworkVerdict& verdict) {
  const auto timed = [](const std::optional<Comparison>& timed) {
    if (!timed) return Json();
    return Json(Json::Object{{"before_ms", timed->first_ms},
                             {"after_ms", timed->second_ms},
                             {"ratio", timed->ratio},
                             {"low", timed->interval.low},
                             {"high", timed->interval.high}});
  };
  Json::Array rejected;
  for (const TaskClaim& claim : verdict.rejected) rejected.push_back(claim.task);
  return Json::Object{{"verdict", proved_name(verdict.proved)},
                      {"reason", verdict.reason},
                      {"found", timed(verdict.all)},
                      {"kept", timed(verdict.left())},
                      {"rejected", rejected},
                      {"rejected_records", verdict.records}};
}

Json tuned_json(const TunedNetwork& tuned, const NetworkVerdict* whole, bool curves) {
  const NetworkTuner& tuner = *tuned.tuner;
  const TuneOutcome& outcome = tuned.outcome;
  Json::Array tasks;
  Json::Object became;
  const auto shares = shares_of(tuner);
  for (size_t i = 0; i < shares.size(); ++i)
    became.push_back({became_name(static_cast<Became>(i)),
                      Json::Object{{"count", static_cast<int64_t>(shares[i].kernels)},
                                   {"share", shares[i].time}}});
  for (size_t i = 0; i < tuner.task_count(); ++i)
    tasks.push_back(tune_json(tuner, i, tuned.peaks, curves));
  Json::Object out{{"stopped", stop_reason_name(tuned.reason)},
                   {"seconds", outcome.seconds},
                   {"searched", outcome.searched},
                   {"measuring", tuner.measuring_seconds()},
                   {"trials", tuner.measured()},
                   {"network_seconds", tuner.network_seconds()},
                   {"default_network_seconds", tuner.first_seconds()},
                   {"reached", static_cast<int64_t>(outcome.reached)},
                   {"failed", static_cast<int64_t>(outcome.failures.size())},
                   {"confirmed", outcome.confirmed.kept},
                   {"refuted", outcome.confirmed.refuted},
                   {"not_confirmed", outcome.confirmed.left},
                   {"least_seconds", least_seconds(tuner)},
                   {"to_win", to_win_json(tuner)},
                   {"kernels", became},
                   {"unused_records", tuned.unused},
                   {"tasks", tasks}};
  if (whole) out.push_back({"whole_network", to_json(*whole)});
  return out;
}

std::string tuned_text(const TunedNetwork& tuned, const NetworkVerdict* whole, int columns) {
  const std::string to_win = to_win_text(*tuned.tuner);
  std::string text = tune_table(*tuned.tuner, tuned.peaks, columns) +
                     (to_win.empty() ? "" : to_win + "\n") +
                     "stopped: " + stop_reason_name(tuned.reason) + " after " +
                     time_text(tuned.outcome) + "\n";
  if (const std::string again = to_string(tuned.outcome.confirmed); !again.empty())
    text += again + "\n";
  if (!tuned.unused.empty()) text += "not taken: " + tuned.unused + "\n";
  for (const std::string& failure : tuned.outcome.failures) text += "failed: " + failure + "\n";
  return text + (whole ? to_string(*whole) : "");
}

Json to_json(const Comparison& proof) {
  return Json::Object{{"default_ms", proof.first_ms},
                      {"tuned_ms", proof.second_ms},
                      {"ratio", proof.ratio},
                      {"low", proof.interval.low},
                      {"high", proof.interval.high}};
}

std::string proof_text(const Comparison& proof) {
  char text[128];
  std::snprintf(text, sizeof text, "%.4g ms by default, %.4g ms tuned: %.3f x (%.3f .. %.3f)",
                proof.first_ms, proof.second_ms, proof.ratio, proof.interval.low,
                proof.interval.high);
  return text;
}

std::vector<std::string> tuning_notes(const TunedCompileReport& tuned, double limit) {
  if (!tuned.outcome && tuned.kept >= limit)
    return {"tuning: " + format_seconds(limit) +
            " leave no time for a search, as a second library and the proof take " +
            format_seconds(tuned.kept) + "; the schedules are those without it"};
  std::vector<std::string> notes;
  if (tuned.network) {
    const NetworkTuner& tuner = *tuned.network->tuner;
    notes.push_back("tuning: " + to_string(shares_of(tuner)));
    if (const std::string text = to_win_text(tuner); !text.empty())
      notes.push_back("tuning: " + text);
  }
  if (tuned.outcome)
    for (const std::string& failure : tuned.outcome->failures)
      notes.push_back("tuning failed: " + failure);
  if (!tuned.verdict) return notes;
  std::istringstream lines(to_string(*tuned.verdict));
  for (std::string line; std::getline(lines, line);) notes.push_back("tuning: " + line);
  if (!tuned.report.example.empty())
    notes.push_back("tuning: timed at " +
                    sizes_text(tuned.report.example, tuned.report.symbol_names));
  notes.push_back(limit_text(limit, tuned.second, *tuned.outcome));
  return notes;
}

Json to_json(const CheckedKernel& kernel) {
  return Json::Object{{"task", kernel.key},
                      {"name", kernel.name},
                      {"algorithm", kernel.algorithm},
                      {"recorded", kernel.recorded},
                      {"by_default", kernel.by_default},
                      {"tuned", json_array(kernel.tuned)},
                      {"default", json_array(kernel.first)},
                      {"default_again", json_array(kernel.again)}};
}

std::string check_table(const std::vector<CheckedKernel>& kernels, int columns) {
  std::string text;
  int same = 0, by_default = 0;
  for (const CheckedKernel& kernel : kernels) {
    std::vector<double> gains, noise;
    for (size_t p = 0; p < kernel.tuned.size(); ++p) {
      gains.push_back(std::sqrt(kernel.first[p] * kernel.again[p]) / kernel.tuned[p]);
      noise.push_back(std::max(kernel.first[p], kernel.again[p]) /
                      std::min(kernel.first[p], kernel.again[p]));
    }
    const auto [low, high] = std::ranges::minmax(gains);
    const bool kept = low >= 1 || high <= 1;
    by_default += kernel.by_default;
    same += kept && !kernel.by_default;
    char line[160];
    std::snprintf(line, sizeof line, " %10.4f ms %6.3f x (%.3f .. %.3f), to itself %.3f%s\n",
                  median_of(kernel.tuned) * 1e3, median_of(gains), low, high,
                  std::ranges::max(noise),
                  kernel.by_default ? "  by default"
                  : kept            ? ""
                                    : "  rank changes");
    text += column(kernel.name, std::clamp(columns - kCheckNumbers, 12, 44)) + line;
  }
  return text + std::to_string(same) + " of " + std::to_string(kernels.size() - by_default) +
         " kernels keep their rank in all processes, " + std::to_string(by_default) +
         " take the default schedule\n";
}

}  // namespace tw
