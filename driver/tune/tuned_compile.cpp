#include "driver/tune/tuned_compile.h"

#include <algorithm>

namespace tw {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Expected<Comparison> prove(const NetworkLibrary& without, const CompileOptions& options,
                           const ScheduleOptions& schedules, const Target& target) {
  TW_ASSIGN(const NetworkLibrary tuned, NetworkLibrary::compile(options, schedules, target));
  return without.against(tuned.path(), {.threads = schedules.threads});
}

Expected<TunedCompileReport> compile_tuned(TunedCompile request, const Target& target,
                                           TuneWatch& watch) {
  constexpr double kProof = 0.15;   // share of the limit for the runs that are compared
  constexpr double kSlower = 1.15;  // factor for the second compile, as its kernels are larger
  const CompileOptions& options = request.options;
  TW_TRY(check_tunable(request.tuning, target));
  const OnStage stage = [&](const std::string& name) { watch.stage_begins(name); };
  TunedCompileReport out;
  TW_ASSIGN(NetworkLibrary without,
            NetworkLibrary::compile(options, without_log(request.schedules), target, stage));
  out.report = without.report();
  watch.stage_ends();
  if (stops(options, out.report)) return out;
  TW_TRY(without.run());
  const double limit = request.tuning.network.scheduler.seconds;
  CompareOptions comparing{.threads = request.schedules.threads};
  if (limit > 0)
    comparing.seconds = std::clamp(kProof * limit / comparing.processes, 0.05, comparing.seconds);
  request.tuning.start = std::chrono::steady_clock::now();
  out.kept = kSlower * without.compile_seconds() + compare_seconds(comparing);
  request.tuning.kept = out.kept;
  if (limit > 0 && out.kept >= limit) {
    TW_ASSIGN(out.report, without.keep(options));
    return out;
  }
  TW_ASSIGN(out.network, tune_network(request.tuning, target, watch));
  out.outcome = out.network->outcome;
  const auto began = std::chrono::steady_clock::now();
  CompileOptions tuned = options;
  tuned.schedules = tuned_schedules(request.schedules);
  TW_ASSIGN(CompileReport report, compile_model(tuned, target, stage));
  if (stops(tuned, report)) {
    out.report = std::move(report);
    return out;
  }
  watch.stage_begins("prove");
  TW_ASSIGN(out.proof, without.against(report.output, comparing));
  watch.stage_ends();
  out.outcome->seconds = seconds_since(request.tuning.start);
  out.second = seconds_since(began);
  if (out.proof->second_is_faster()) {
    out.report = std::move(report);
  } else {
    TW_ASSIGN(out.report, without.keep(options));
  }
  return out;
}

}  // namespace tw
