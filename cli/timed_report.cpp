#include "cli/timed_report.h"

#include "cli/kernel_table.h"
#include "driver/run/time_model.h"
#include "ir/dim_names.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

constexpr int kThreads = 1;

Error time_library(const CompileReport& compiled, Report& report) {
  TW_ASSIGN(const std::string text, read_manifest(compiled.output, Integrity::trust));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, compiled.output));
  TW_ASSIGN(const Target target, parse_target(manifest.target_yaml, compiled.output));
  TW_ASSIGN(const LoadedModel model, LoadedModel::open(compiled.output, Integrity::trust));
  InputSources sources;
  sources.random = 0;
  for (const auto& [symbol, size] : compiled.example)
    sources.dims.push_back(symbol_name(compiled.symbol_names, symbol) + "=" + std::to_string(size));
  TW_ASSIGN(Inputs inputs, load_inputs(input_specs(model.api()), sources));
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

}  // namespace

void add_times(const CompileReport& compiled, Report& report) {
  if (Error error = time_library(compiled, report)) report.no_times = error_text(std::move(error));
}

}  // namespace tw
