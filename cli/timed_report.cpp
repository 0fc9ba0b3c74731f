#include "cli/timed_report.h"

#include "cli/progress.h"
#include "cli/text/kernel_table.h"
#include "driver/run/time_model.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

constexpr int kThreads = 1;

Expected<Inputs> random_inputs(const tw_api& api, const CompileReport& compiled) {
  InputSources sources;
  sources.random = 0;
  sources.dims = size_flags(compiled.example, compiled.symbol_names);
  return load_inputs(input_specs(api), sources);
}

Error time_library(const CompileReport& compiled, Report& report) {
  TW_ASSIGN(const std::string text, read_manifest(compiled.output, Integrity::trust));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, compiled.output));
  TW_ASSIGN(const Target target, parse_target(manifest.target_yaml, compiled.output));
  TW_ASSIGN(const LoadedModel model, LoadedModel::open(compiled.output, Integrity::trust));
  TW_ASSIGN(Inputs inputs, random_inputs(model.api(), compiled));
  TW_ASSIGN(ModelRun run, ModelRun::create(model.api(), std::move(inputs), kThreads));
  TW_TRY(run.run());
  TW_ASSIGN(const std::vector<double> ms, time_calls(run, {0, 1}));
  if (ms.size() < report.calls.size() || ms.size() != manifest.calls.size())
    return make_error(DiagCode::invalid_model, "the library has {0} calls, the plan {1}", ms.size(),
                      report.calls.size());
  TW_ASSIGN(const Peaks peaks, measure_peaks(target, kThreads));
  TW_ASSIGN(const KernelTable table, kernel_table(manifest, run.symbols(), peaks, ms));
  report.peaks = to_string(peaks);
  report.gflops = peaks.gflops, report.dram_gbs = peaks.levels.back().gbs;
  for (size_t i = 0; i < report.calls.size(); ++i) {
    const KernelRow& row = table.rows[i];
    report.times.push_back({row.ms, row.roof.seconds * 1e3, row.flops,
                            row.weight_bytes + row.tensor_bytes, row.roof.bound});
  }
  return Error::success();
}

Expected<NodeErrors> errors_of(const CompileOptions& options, const Target& target,
                               const CompileReport& compiled, double seconds) {
  Inputs inputs;
  {
    TW_ASSIGN(const LoadedModel model, LoadedModel::open(compiled.output, Integrity::trust));
    TW_ASSIGN(inputs, random_inputs(model.api(), compiled));
  }
  CompileOptions kept;
  kept.model = options.model, kept.dims = options.dims, kept.limits = options.limits;
  kept.rounding = options.rounding;
  kept.pipeline = options.pipeline, kept.algorithms = options.algorithms;
  kept.jobs = options.jobs, kept.name = "kept";
  return node_errors(kept, target, inputs, seconds, kThreads);
}

}  // namespace

void add_times(const CompileReport& compiled, Report& report) {
  if (Error error = time_library(compiled, report)) report.no_times = error_text(std::move(error));
}

void add_errors(const CompileOptions& options, const Target& target, const CompileReport& compiled,
                double seconds, Report& report) {
  Expected<NodeErrors> errors = errors_of(options, target, compiled, seconds);
  if (!errors) {
    report.errors_note = "Not compared: " + error_text(errors.takeError()) + ".";
    return;
  }
  std::string note =
      "Of each fused group's result on random inputs, against the reference evaluator of the whole "
      "graph. The range is the smallest interval that holds 0 and all finite values.";
  if (errors->left > 0)
    note += " " + std::to_string(errors->left) + " results were not reached in " +
            format_seconds(seconds) + ".";
  add_errors(*errors, note, report);
}

}  // namespace tw
