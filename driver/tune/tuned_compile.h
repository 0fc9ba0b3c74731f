// Compiles with tuning: the proof that a whole network gains, and compile --tune.
#pragma once
#include <optional>

#include "driver/compare/compare_artifacts.h"
#include "driver/compile/compile.h"
#include "driver/tune/tune_network.h"
#include "driver/tune/tuned_schedules.h"
#include "support/temporary_folder.h"

namespace tw {

// The library without the log, in a temporary folder: the first side of a proof. It runs once
// before anything is tuned, so that a model without a possible proof fails early. Free dimensions
// have the sizes of the report's example.
class DefaultLibrary {
 public:
  // If the options are strict and the report has faults, no library is made.
  static Expected<DefaultLibrary> compile(const CompileOptions& options,
                                          const ScheduleOptions& schedules, const Target& target,
                                          const OnStage& stage = nullptr);
  const CompileReport& report() const { return report_; }
  // Compares this library with another one. The two run in turns.
  Expected<Comparison> against(const std::string& second, CompareOptions options) const;
  // Copies the library's files to the paths in the options.
  Expected<CompileReport> keep(const CompileOptions& options) const;

 private:
  DefaultLibrary(TemporaryFolder folder, CompileOptions options, CompileReport report)
      : folder_(std::move(folder)), options_(std::move(options)), report_(std::move(report)) {}
  std::vector<std::string> sizes() const;  // in the form of --dim

  TemporaryFolder folder_;
  CompileOptions options_;
  CompileReport report_;
};

// Compares the library by the log's schedules with the one without the log, on as many threads as
// the records have.
Expected<Comparison> prove(const DefaultLibrary& without, const CompileOptions& options,
                           const ScheduleOptions& schedules, const Target& target);

// A compile that tunes its kernels first, up to a number of trials or a time limit. It starts with
// a compile without tuning, and the limit counts from the end of that. The second library and the
// proof are within the limit, too.
struct TunedCompile {
  CompileOptions options;
  ScheduleOptions schedules;  // log: the tuning's
  TuneRequest tuning;         // the scheduler's seconds are the limit; 0: none
};
// The result of a tuned compile. No outcome: there was no time for a search, or the first compile
// stopped at a fault. An outcome without a proof: the second compile stopped at a fault.
struct TunedCompileReport {
  // Report of the library that is kept: the tuned one only if it is surely faster
  CompileReport report;
  double kept =
      0;  // seconds of the limit that a second library and the proof were expected to take
  std::optional<TuneOutcome> outcome;  // outcome->seconds counts everything
  std::optional<TunedNetwork> network;
  std::optional<Comparison> proof;
  double second = 0;  // seconds of the second library and the proof
};
Expected<TunedCompileReport> compile_tuned(TunedCompile request, const Target& target,
                                           TuneWatch& watch);

}  // namespace tw
