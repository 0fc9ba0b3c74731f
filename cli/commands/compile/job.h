// One compile of the command line: its flags, and the state that its steps hand on.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/accuracy_flags.h"
#include "cli/algorithm_flags.h"
#include "cli/app.h"
#include "cli/build_cache.h"
#include "cli/commands/compile/staged_files.h"
#include "cli/commands/compile/verify_flags.h"
#include "cli/commands/precision_flag.h"
#include "cli/compile_report.h"
#include "cli/file_roles.h"
#include "cli/flags.h"
#include "cli/given_flags.h"
#include "cli/runner_file.h"
#include "cli/untrusted.h"
#include "driver/compare/budget_check.h"
#include "driver/compile/compile.h"
#include "driver/tune/tuned_compile.h"

namespace tw {

struct CompileArgs {
  std::string model, target = "host", output, name, prefix, header, weights, emit, dump_dir, log,
                     tune, tuner, depfile, budget, junit, report, optimize;
  PrecisionFlag precision;
  AccuracyFlags accuracy;
  AlgorithmFlags algorithms;
  UntrustedFlags untrusted;
  GivenFlags given;
  CacheFlags cache;
  RunnerFile runner;
  VerifyFlags verify;
  RoundingFlag rounding;
  std::vector<std::string> dims, specialize, passes, print_after;
  int jobs = 0, pass_limit = -1, virtual_threads = 0, threads = 1;
  double report_errors = 0;  // seconds
  bool frozen = false, strict = false, print_changed = false, time_passes = false,
       verify_each = false, freestanding = false;
  bool predicted = false;      // the description lets predictors choose, and no flag says otherwise
  bool without_rules = false;  // the description says that predictors schedule its kernels
  std::function<std::vector<GivenFlag>()> flags;  // as the command line gave them
};

constexpr const char* kNoBudget = "none";

// Final paths of a library's files
struct Places {
  std::string library, header, runner;
};

// One compile, after everything is read that its flags name
struct Job {
  const CompileArgs& args;
  Target target;
  CompileOptions options = {};  // paths of outputs are the staged ones
  StagedFiles staged = {};
  Places places = {};
  std::string report = {}, depfile = {}, runner = {};  // staged paths; "": none
  std::string dependencies = {}, runner_program = {};  // contents of the last two
  Budget budget = {};
  std::optional<AccuracyRequest> limit = {};  // limit of accuracy
  std::optional<AccuracyReport> accuracy = {};
  std::optional<VerifiedLibrary> verified = {};
  double verify_seconds = 0;
  FileRoles files = {};
  std::optional<CompileCache> cache = {};
  std::unique_ptr<CachedObjects> objects = {};  // null: there is no cache
  std::string key = {};                         // key in the cache; "": it is not for the cache
  std::vector<PassTime> passes = {};
  std::vector<std::string> notes = {};  // notes on choices
  PlannedProgram planned = {};          // for the report
};

// Flags as options; errors: flags that do not go together (options.cpp)
bool is_text(Emit emit);
ScheduleOptions schedules_of(const CompileArgs& args);
Expected<CompileOptions> options_of(const CompileArgs& args);

// Choices before the work begins (prepare.cpp)
Expected<Target> choose_target(CompileArgs& args);
Error prepare_job(Job& job);
bool only_predicts(const CompileArgs& args);  // predictors choose, and nothing is measured
Expected<TunedCompile> tuned_compile(const CompileArgs& args, const Target& target,
                                     const CompileOptions& options);

// The cache of builds (cached.cpp)
std::string why_not_cached(const Job& job);  // "": a build can come from the cache
Error find_build_key(Job& job);
Expected<int> finish_cached_library(Job& job, const CachedBuild& build, Console& console);
Error add_to_build_cache(const Job& job, const Json::Object& report, const std::string& remarks);

// Checks of a library once it is made, and its last steps (finish.cpp)
Expected<CompileReport> within_accuracy(Job& job, CompileReport report, const OnStage& stage);
Error verify_made(Job& job, const OnStage& stage);
int show_mismatch(const Job& job, Console& console);
Expected<Json::Array> write_report_page(const Job& job, const CompileReport& compiled);
Error publish(Job& job);  // moves staged files to their places
Expected<int> finish_library(Job& job, Json::Object report, const std::string& summary,
                             Console& console);

Expected<int> compile_command(CompileArgs args, Console& console);  // the steps (compile.cpp)

}  // namespace tw
