#include "driver/compare/verify.h"

#include <algorithm>

#include "packager/artifact.h"

namespace tw {
namespace {

// All outputs in the folder; empty if it has no output_0
Expected<std::vector<Tensor>> stored_outputs(const std::string& dir, size_t count) {
  std::vector<Tensor> list;
  for (size_t i = 0; i < count; ++i) {
    TW_ASSIGN(std::optional<Tensor> tensor, read_stored(dir, "output", i));
    if (!tensor && list.empty()) return list;
    if (!tensor) return make_error(DiagCode::io, "'{0}' has output_0 but no output_{1}", dir, i);
    list.push_back(std::move(*tensor));
  }
  return list;
}

bool is_given(const std::string& name, size_t inputs, const std::vector<std::string>& files) {
  return std::ranges::any_of(files, [&](const std::string& file) {
    return file.starts_with(name + "=") || file.ends_with(".npz") || inputs == 1;
  });
}

}  // namespace

bool VerifyReport::same() const { return std::ranges::all_of(outputs, &VerifiedOutput::same); }

std::vector<std::string> made_up_integers(const std::vector<TensorSpec>& specs,
                                          const InputSources& sources) {
  std::vector<std::string> warnings;
  if (!sources.data.empty()) return warnings;
  for (const TensorSpec& spec : specs)
    if (is_int(spec.dtype) && !is_given(spec.name, specs.size(), sources.files))
      warnings.push_back("input '" + spec.name + "' is made up of 0 and 1, as " +
                         dtype_name(spec.dtype) +
                         " may be indices: real values say more (--input, --data)");
  return warnings;
}

std::vector<std::string> little_said(const std::vector<VerifiedOutput>& outputs) {
  std::vector<std::string> warnings;
  for (const VerifiedOutput& output : outputs)
    if (output.says_little())
      warnings.push_back("of output '" + output.name +
                         "' these inputs say little: the model's own types are off by " +
                         number_text(100 * output.unoptimized->max_rel) +
                         " % of its range without any optimization; give others (--input, --data)");
  return warnings;
}

Expected<VerifyReport> verify_model(const VerifyRequest& request, const OnStage& stage,
                                    const std::function<void(const std::string&)>& warn) {
  VerifyReport report;
  TW_ASSIGN(const std::string text, read_manifest(request.library, Integrity::trust));
  TW_ASSIGN(report.manifest, parse_manifest(text, request.library));
  TW_ASSIGN(const LibraryRuns runs,
            LibraryRuns::open(request.library, report.manifest, request.place,
                              request.check ? Integrity::check : Integrity::trust));
  report.machine = runs.machine();
  const auto tell = [&](const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings)
      if (warn) warn(warning);
  };
  InputSources sources = request.inputs;
  if (!sources.random && sources.files.empty() && sources.data.empty()) sources.random = 0;
  TW_ASSIGN(const Inputs inputs, load_inputs(runs.inputs(), sources));
  tell(made_up_integers(runs.inputs(), sources));
  TW_ASSIGN(const std::vector<Tensor> got, runs.run(inputs));

  std::vector<Tensor> want;
  if (!sources.data.empty()) {
    TW_ASSIGN(want, stored_outputs(sources.data, got.size()));
    if (want.empty() && request.model.empty())
      return make_error(DiagCode::io,
                        "'{0}' has no output_0.pb: give the ONNX model to compare with",
                        sources.data);
  }
  report.stored = !want.empty();
  for (size_t i = 0; i < want.size(); ++i)
    report.outputs.push_back({runs.outputs()[i], compare(got[i], want[i], request.tolerance)});
  if (report.stored && !request.per_node) return report;
  Judge judge({request.model, report.manifest, request.reference, request.tolerance}, stage);
  TW_ASSIGN(const bool known, judge.is_the_model());
  if (!known)
    tell({"'" + request.library + "' was not compiled from '" + request.model + "' as it is now"});
  TW_ASSIGN(std::vector<VerifiedOutput> judged, judge.judge(got, inputs, runs.inputs()));
  report.reference = judge.last();
  if (!report.stored) report.outputs = std::move(judged);
  tell(little_said(report.outputs));
  return report;
}

Expected<PerNodeReport> verify_nodes(const VerifyRequest& request, const VerifyReport& report) {
  CompileOptions options;
  options.model = request.model;
  options.dims = report.manifest.dims;
  options.limits = report.manifest.limits;
  options.given = report.manifest.given;
  options.rounding = report.manifest.rounding;
  options.pipeline = report.manifest.pipeline;
  options.algorithms = report.manifest.algorithms;
  options.name = "kept";
  TW_ASSIGN(const Target target, parse_target(report.manifest.target_yaml,
                                              request.library + " (its manifest's target)"));
  return compare_nodes(options, target, report.reference->inputs, report.reference->outputs,
                       request.tolerance, request.place.threads);
}

}  // namespace tw
