// Compiles with tuning: the proof that a whole network gains, and compile --tune.
#pragma once
#include <optional>

#include "driver/tune/network_proof.h"

namespace tw {

// Compares the library by the log's schedules with the one without the log, on as many threads as
// the records have.
Expected<Comparison> prove(const NetworkLibrary& without, const CompileOptions& options,
                           const ScheduleOptions& schedules, const Target& target);

// A compile that tunes its kernels first, up to a number of trials or a time limit. It starts with
// a compile by the log as it is, and the limit counts from the end of that. The second library and
// the proof are within the limit, too.
struct TunedCompile {
  CompileOptions options;
  ScheduleOptions schedules;  // log: the tuning's
  TuneRequest tuning;         // the scheduler's seconds are the limit; 0: none
};
// The result of a tuned compile. No outcome: there was no time for a search, or the first compile
// stopped at a fault.
struct TunedCompileReport {
  // Report of the library that is kept: with the schedules that gain, as the verdict says
  CompileReport report;
  double kept =
      0;  // seconds of the limit that a second library and the proof were expected to take
  std::optional<TuneOutcome> outcome;  // outcome->seconds counts everything
  std::optional<TunedNetwork> network;
  std::optional<NetworkVerdict> verdict;
  double second = 0;  // seconds of the second library and the proof
};
Expected<TunedCompileReport> compile_tuned(TunedCompile request, const Target& target,
                                           TuneWatch& watch);

}  // namespace tw
