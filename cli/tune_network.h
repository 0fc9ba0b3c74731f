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
};
// Until a limit of the request or Ctrl-C. quiet: nothing on console.out. Errors: a target that this machine cannot run, no task that can be measured.
Error tune_network(const TuneRequest& request, const Target& target, Console& console, bool quiet);

// Of --log, or the user's own. Error: neither is there.
Expected<std::string> tuning_log(const std::string& flag);
double seconds_from_text(const std::string& text);   // "90", "90s", "10m", "1.5h"; 0: not a time

// The library that `plain` makes (first) against that of `plain` with the log's schedules (second), both built in a temporary folder and run in
// turns on one thread; free dimensions are 1.
Expected<Comparison> prove(const CompileOptions& plain, const std::string& log, const Target& target);
Json to_json(const Comparison& proof);
std::string proof_text(const Comparison& proof);     // "14.10 ms by default, 13.50 ms tuned: 1.04 x (1.02 .. 1.06)"

}  // namespace tw
