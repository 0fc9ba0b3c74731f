// A whole network's library in a temporary folder, to be timed against another one.
#pragma once
#include <string>
#include <vector>

#include "driver/compare/compare_artifacts.h"
#include "driver/compile/compile.h"
#include "driver/tune/tuned_schedules.h"
#include "support/temporary_folder.h"

namespace tw {

// Free dimensions have the sizes of the report's example.
class NetworkLibrary {
 public:
  // If the options are strict and the report has faults, no library is made.
  static Expected<NetworkLibrary> compile(const CompileOptions& options,
                                          const ScheduleOptions& schedules, const Target& target,
                                          const OnStage& stage = nullptr);
  // Runs the library once in a process of its own. Errors: a model that cannot be timed.
  Error run();
  const CompileReport& report() const { return report_; }
  const std::string& path() const { return options_.output; }
  double compile_seconds() const;
  double run_seconds() const { return run_seconds_; }  // seconds of run(); 0: it did not run
  std::vector<std::string> sizes() const;              // in the form of --dim
  // Compares this library with another one. The two run in turns.
  Expected<Comparison> against(const std::string& second, CompareOptions options) const;
  // Copies the library's files to the paths in the options.
  Expected<CompileReport> keep(const CompileOptions& options) const;

 private:
  NetworkLibrary(TemporaryFolder folder, CompileOptions options, CompileReport report, int threads)
      : folder_(std::move(folder)),
        options_(std::move(options)),
        report_(std::move(report)),
        threads_(threads) {}

  TemporaryFolder folder_;
  CompileOptions options_;
  CompileReport report_;
  int threads_;
  double run_seconds_ = 0;
};

ScheduleOptions without_log(ScheduleOptions schedules);
// True if a strict compile found faults: it writes nothing.
bool stops(const CompileOptions& options, const CompileReport& report);

}  // namespace tw
