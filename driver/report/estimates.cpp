#include "driver/report/estimates.h"

#include <algorithm>

#include "backends/backend.h"
#include "driver/compile/example_sizes.h"
#include "ir/core_rates.h"
#include "ir/kernel/work.h"
#include "support/parallel.h"

namespace tw {
namespace {

ReportEstimate estimate_of(const Backend& backend, const Kernel& kernel, const Target& target) {
  ReportEstimate out;
  Expected<KernelEstimate> estimate = backend.estimate(kernel, ProcessorModel::own);
  if (!estimate) {
    out.problem = error_text(estimate.takeError());
    return out;
  }
  out.cycles = estimate->cycles, out.hot = estimate->hot;
  out.peak_flops = 2 * core_rates(target).multiply_adds(multiplied_type(kernel));
  return out;
}

}  // namespace

Error add_estimates(const PlannedProgram& planned, const CompileReport& compiled,
                    const Target& target, int jobs, Report& report) {
  const Program& program = planned.program;
  TW_ASSIGN(const std::unique_ptr<Backend> backend, make_backend(target));
  std::vector<ReportEstimate> kernels(program.kernels.size());
  TW_TRY(parallel_for(jobs, kernels.size(), [&](size_t k) -> Error {
    kernels[k] = estimate_of(*backend, program.kernels[k], target);
    return Error::success();
  }));
  report.no_times = "the target is not 'host'";
  report.clock = core_rates(target).clock;
  report.estimated_alike = backend->estimated_alike();
  Sizes sizes = compiled.example;
  for (const KernelCall& call : program.calls) {
    ReportEstimate& out = report.estimates.emplace_back();
    if (call.function || call.device) {
      out.problem = call.device ? "it runs on a device" : "it is a function of the runtime library";
      continue;
    }
    const auto k = static_cast<size_t>(call.kernel);
    out = kernels[k];
    const Expr flops = k < program.work.size() ? program.work[k].flops
                                               : count_work(program.kernels[k]).flops;
    Sizes own;
    for (size_t s = 0; s < program.kernels[k].symbols.size() && s < call.symbols.size(); ++s)
      own[program.kernels[k].symbols[s]] = value_at(call.symbols[s], sizes);
    out.flops = static_cast<double>(value_at(flops, own));
  }
  return Error::success();
}

}  // namespace tw
