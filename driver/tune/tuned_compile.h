// Compiles that tuning is part of: the proof that a whole network gains, and compile --tune.
#pragma once
#include <optional>

#include "driver/compare/compare_artifacts.h"
#include "driver/compile/compile.h"
#include "driver/tune/tune_network.h"
#include "driver/tune/tuned_schedules.h"

namespace tw {

// The library that the log's schedules make (second) against the one without the log (first), both
// built in a temporary folder and run in turns on as many threads as the records; free dimensions
// are 1.
Expected<Comparison> prove(const CompileOptions& options, const ScheduleOptions& schedules,
                           const Target& target);

// A compile whose kernels are tuned before: until a number of trials, or within a time limit that
// counts from the end of the compile without tuning, which comes first; the second library and the
// proof are within it, too.
struct TunedCompile {
  CompileOptions options;
  ScheduleOptions schedules;  // log: of the tuning
  TuneRequest tuning;         // its scheduler's seconds are the limit; 0: none
};
// What became of it. Without an outcome there was no time for a search; without a proof the
// compile stopped at a fault.
struct TunedCompileReport {
  // Of the library that is there: with the log only where that is surely faster
  CompileReport report;
  double kept =
      0;  // seconds of the limit that a second library and the proof were expected to take
  std::optional<TuneOutcome> outcome;  // its seconds: of all
  std::optional<Comparison> proof;
  double second = 0;  // seconds of the second library and the proof
};
Expected<TunedCompileReport> compile_tuned(TunedCompile request, const Target& target,
                                           TuneWatch& watch);

}  // namespace tw
