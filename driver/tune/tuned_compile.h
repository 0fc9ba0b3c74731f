// Compiles that tuning is part of: the proof that a whole network gains, and compile --tune.
#pragma once
#include <optional>

#include "driver/compare/compare_artifacts.h"
#include "driver/compile/compile.h"
#include "driver/run/temporary_folder.h"
#include "driver/tune/tune_network.h"
#include "driver/tune/tuned_schedules.h"

namespace tw {

// The library without the log, in a temporary folder: the first of a proof. It is run once before
// anything is tuned, so that what no proof can be made of says so then. Its free dimensions have
// the sizes of the report's example.
class DefaultLibrary {
 public:
  // Where the options are strict and the report has faults, no library is made.
  static Expected<DefaultLibrary> compile(const CompileOptions& options,
                                          const ScheduleOptions& schedules, const Target& target,
                                          const OnStage& stage = nullptr);
  const CompileReport& report() const { return report_; }
  // Against the other library, both run in turns.
  Expected<Comparison> against(const std::string& second, CompareOptions options) const;
  // In the places of the options' files.
  Expected<CompileReport> keep(const CompileOptions& options) const;

 private:
  DefaultLibrary(TemporaryFolder folder, CompileOptions options, CompileReport report)
      : folder_(std::move(folder)), options_(std::move(options)), report_(std::move(report)) {}
  std::vector<std::string> sizes() const;  // as --dim has them

  TemporaryFolder folder_;
  CompileOptions options_;
  CompileReport report_;
};

// The library that the log's schedules make, against the one without the log, on as many threads as
// the records.
Expected<Comparison> prove(const DefaultLibrary& without, const CompileOptions& options,
                           const ScheduleOptions& schedules, const Target& target);

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
  std::optional<TunedNetwork> network;
  std::optional<Comparison> proof;
  double second = 0;  // seconds of the second library and the proof
};
Expected<TunedCompileReport> compile_tuned(TunedCompile request, const Target& target,
                                           TuneWatch& watch);

}  // namespace tw
