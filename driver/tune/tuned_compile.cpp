#include "driver/tune/tuned_compile.h"

#include <chrono>

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
  const CompileOptions& options = request.options;
  TW_TRY(check_tunable(request.tuning, target));
  const double limit = request.tuning.network.scheduler.seconds;
  TunedCompileReport out;
  TW_ASSIGN(
      const NetworkProof proof,
      NetworkProof::begin({.options = options, .schedules = request.schedules, .limit = limit},
                          target, [&](const std::string& name) { watch.stage_begins(name); }));
  out.report = proof.before().report();
  watch.stage_ends();
  if (stops(options, out.report)) return out;
  request.tuning.start = std::chrono::steady_clock::now();
  request.tuning.kept = out.kept = proof.kept();
  if (limit > 0 && out.kept >= limit) {
    TW_ASSIGN(out.report, proof.before().keep(options));
    return out;
  }
  TW_ASSIGN(out.network, tune_network(request.tuning, target, watch));
  const auto began = std::chrono::steady_clock::now();
  watch.stage_begins("prove");
  TW_ASSIGN(out.verdict, judge_search(proof, request.tuning, *out.network));
  watch.stage_ends();
  const NetworkLibrary& kept = out.verdict->library ? *out.verdict->library : proof.before();
  TW_ASSIGN(out.report, kept.keep(options));
  out.outcome = out.network->outcome;
  out.second = seconds_since(began);
  return out;
}

}  // namespace tw
