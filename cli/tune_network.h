// Tuning a network as one step: the search, shown while it works, and the proof that the whole
// network gains.
#pragma once
#include <chrono>

#include "cli/app.h"
#include "cli/tune_budget.h"
#include "driver/compare/compare_artifacts.h"
#include "driver/compile/compile.h"
#include "driver/tune/tune_services.h"
#include "driver/tune/tuned_schedules.h"

namespace tw {

struct TuneRequest {
  std::string model;  // file
  std::map<std::string, int64_t> dims;
  NetworkOptions network;
  TuneSources sources;
  std::string log;  // read and written
  int kernel = 0;   // only this one of the model, counted from 1; 0: all
  double kept = 0;  // of the time limit what comes behind the tuning, seconds
  // Of the time limit
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};
// Measurements that confirm the gain, or do not; left: for want of time
struct ConfirmedRecords {
  int kept = 0, refuted = 0, left = 0;
};
struct TuneOutcome {
  int trials = 0;
  size_t kernels = 0, reached = 0;   // reached: with a time of their own
  double searched = 0, seconds = 0;  // seconds: of all, from the request's start
  ConfirmedRecords confirmed;
};
// "measured again: 5 gains stand, 2 do not; 3 were not, for want of time"; "": nothing to say
std::string to_string(const ConfirmedRecords& confirmed);
// Until a limit of the request or Ctrl-C. quiet: nothing on console.out. Errors: a target that this
// machine cannot run, no task that can be measured.
Expected<TuneOutcome> tune_network(const TuneRequest& request, const Target& target,
                                   Console& console, bool quiet);

// The model's tasks, or the one that is asked for. Errors: there is no such one.
Expected<std::vector<Task>> chosen_tasks(const TuneRequest& request, const Target& target);

// Of --log, or the user's own. Error: neither is there.
Expected<std::string> tuning_log(const std::string& flag);
double seconds_from_text(const std::string& text);  // "90", "90s", "10m", "1.5h"; 0: not a time

// The library that `tuned` makes without its log (first) against the one with it (second), both
// built in a temporary folder and run in turns on as many threads as the records; free dimensions
// are 1.
Expected<Comparison> prove(const CompileOptions& tuned, const ScheduleOptions& schedules,
                           const Target& target);
// A compile whose kernels are tuned before, within a time limit that counts from the end of the
// compile without tuning, which comes first; the second library and the proof are within it, too.
// The output is the one with the log only where that is surely faster; notes of the report say what
// was seen and what was left out.
struct TunedCompile {
  CompileOptions options;
  ScheduleOptions schedules;  // log: of the tuning
  TuneRequest tuning;         // its scheduler's seconds are the limit
};
Expected<CompileReport> compile_tuned(TunedCompile request, const Target& target, Console& console);
Json to_json(const Comparison& proof);
// "14.10 ms by default, 13.50 ms tuned: 1.04 x (1.02 .. 1.06)"
std::string proof_text(const Comparison& proof);

}  // namespace tw
