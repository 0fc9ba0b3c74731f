// Tuning a network as one step: the search, shown while it works, and the proof that the whole network gains.
#pragma once
#include "cli/app.h"
#include "cli/compare_artifacts.h"
#include "cli/compile.h"
#include "cli/tune_services.h"

namespace tw {

struct TuneRequest {
  std::string model;                     // file
  std::map<std::string, int64_t> dims;
  NetworkOptions network;
  TuneSources sources;
  std::string log;                       // read and written
  int kernel = 0;                        // only this one of the model, counted from 1; 0: all
};
// Until a limit of the request or Ctrl-C. quiet: nothing on console.out. Errors: a target that this machine cannot run, no task that can be measured.
Error tune_network(const TuneRequest& request, const Target& target, Console& console, bool quiet);

// The model's tasks, or the one that is asked for. Errors: there is no such one.
Expected<std::vector<Task>> chosen_tasks(const TuneRequest& request, const Target& target);

// Of --log, or the user's own. Error: neither is there.
Expected<std::string> tuning_log(const std::string& flag);
double seconds_from_text(const std::string& text);   // "90", "90s", "10m", "1.5h"; 0: not a time

// The library that `tuned` makes without its log (first) against the one with it (second), both built in a temporary folder and run in turns on as
// many threads as the records; free dimensions are 1.
Expected<Comparison> prove(const CompileOptions& tuned, const Target& target);
// Both are built, and the output is the one with the log only where that is surely faster; a note of the report says what was seen.
Expected<CompileReport> compile_proven(const CompileOptions& tuned, const Target& target, const OnStage& progress);
Json to_json(const Comparison& proof);
std::string proof_text(const Comparison& proof);     // "14.10 ms by default, 13.50 ms tuned: 1.04 x (1.02 .. 1.06)"

}  // namespace tw
