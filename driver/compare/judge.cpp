#include "driver/compare/judge.h"

#include <algorithm>
#include <cmath>

#include "driver/run/library_runs.h"
#include "passes/passes.h"

namespace tw {
namespace {

constexpr double kLittle = 0.1;  // share of an output's range

// The error that a library may have if the model's own types have the error `own`
double room(double own) { return std::min(4 * own, std::max(kLittle, 2 * own)); }

// If the model's own types cannot hold a result, their infinity or NaN is the right result.
Tensor within_reach(Tensor exact, const Tensor& own) {
  if (!is_float(exact.dtype) || exact.shape != own.shape) return exact;
  for (int64_t i = 0; i < exact.size(); ++i)
    if (std::isfinite(exact.at(i)) && !std::isfinite(own.at(i))) exact.set(i, own.at(i));
  return exact;
}

}  // namespace

bool VerifiedOutput::same() const {
  if (difference.same) return true;
  return difference.problem.empty() && unoptimized && unoptimized->problem.empty() &&
         difference.nan < difference.elements && std::isfinite(difference.max_rel) &&
         difference.max_rel <= room(unoptimized->max_rel) &&
         difference.rms_rel <= room(unoptimized->rms_rel);
}

bool VerifiedOutput::says_little() const {
  return same() && unoptimized && unoptimized->max_rel > kLittle;
}

std::string to_string(const VerifiedOutput& output) {
  std::string text = to_string(output.difference);
  if (output.unoptimized && output.unoptimized->problem.empty())
    text += "; unoptimized, in the model's types: max rel " +
            number_text(output.unoptimized->max_rel) + ", rms " +
            number_text(output.unoptimized->rms_rel) + " (the library's rms " +
            number_text(output.difference.rms_rel) + ")";
  return text;
}

Json to_json(const VerifiedOutput& output) {
  Json::Object json{
      {"name", output.name}, {"ok", output.same()}, {"difference", to_json(output.difference)}};
  if (output.unoptimized) json.push_back({"unoptimized", to_json(*output.unoptimized)});
  return json;
}

Expected<Model> Judge::import() {
  if (stage_) stage_("import");
  const Manifest& manifest = request_.manifest;
  TW_ASSIGN(Model model,
            import_onnx(request_.model, {manifest.dims, manifest.limits, manifest.given}));
  TW_TRY(round_by(manifest.rounding, model.graph));
  same_model_ = model.sha256 == manifest.model_sha256;
  input_names_.clear();
  for (const ValueId id : model.graph.inputs()) input_names_.push_back(model.graph.value(id).name);
  return model;
}

Expected<bool> Judge::is_the_model() {
  if (!same_model_) TW_TRY(import().takeError());
  return *same_model_;
}

Expected<std::vector<Tensor>> Judge::evaluated(bool wide) {
  TW_ASSIGN(Model model, import());
  if (stage_) stage_("reference");
  std::vector<Tensor> inputs = last_.inputs.tensors;
  if (wide) {
    const Target target = host_target();
    PassContext context{target};
    TW_TRY(run_passes(model.graph, context, {"widen-floats"}));
    for (Tensor& input : inputs) input = widened(input);
  }
  return evaluate(model.graph, inputs);
}

Expected<std::vector<Tensor>> Judge::outputs_by(ReferenceKind kind) {
  if (kind == ReferenceKind::operators) return evaluated(false);
  std::optional<ReferenceModel>& reference = kind == ReferenceKind::f64 ? exact_ : own_;
  if (!reference) {
    TW_ASSIGN(Model model, import());
    if (stage_) stage_("reference");
    TW_ASSIGN(Target target, parse_target(request_.manifest.target_yaml, "the manifest's target"));
    if (!runs_here(target)) target = host_target();
    TW_ASSIGN(ReferenceModel made,
              ReferenceModel::compile(std::move(model), std::move(target), kind));
    reference.emplace(std::move(made));
  }
  return reference->run(last_.inputs);
}

Expected<std::vector<VerifiedOutput>> Judge::judge(const std::vector<Tensor>& got,
                                                   const Inputs& inputs,
                                                   const std::vector<TensorSpec>& specs) {
  if (!same_model_) TW_TRY(import().takeError());
  last_ = {{}, {{}, inputs.symbols}};
  for (const std::string& name : input_names_) {
    const auto found = std::ranges::find(specs, name, &TensorSpec::name);
    if (found == specs.end())
      return make_error(DiagCode::invalid_argument,
                        "the library has no input '{0}': it was compiled from another model", name);
    last_.inputs.tensors.push_back(inputs.tensors[static_cast<size_t>(found - specs.begin())]);
  }
  TW_ASSIGN(last_.outputs, outputs_by(request_.reference));
  if (last_.outputs.size() != got.size())
    return make_error(DiagCode::invalid_argument, "the library has {0} outputs, '{1}' has {2}",
                      got.size(), request_.model, last_.outputs.size());
  std::vector<VerifiedOutput> outputs;
  bool same = true;
  for (size_t i = 0; i < got.size(); ++i) {
    outputs.push_back(
        {request_.manifest.outputs[i].name, compare(got[i], last_.outputs[i], request_.tolerance)});
    same &= outputs.back().same();
  }
  if (same) return outputs;
  const bool is_exact = request_.reference == ReferenceKind::f64;
  TW_ASSIGN(const std::vector<Tensor> other, is_exact ? outputs_by(ReferenceKind::unoptimized)
                                             : request_.reference == ReferenceKind::operators
                                                 ? evaluated(true)
                                                 : outputs_by(ReferenceKind::f64));
  const std::vector<Tensor>&exact = is_exact ? last_.outputs : other,
        &own = is_exact ? other : last_.outputs;
  for (size_t i = 0; i < got.size(); ++i) {
    if (outputs[i].difference.same) continue;
    const Tensor want = within_reach(exact[i], own[i]);
    outputs[i].difference = compare(got[i], want, request_.tolerance);
    outputs[i].unoptimized = compare(own[i], want, request_.tolerance);
  }
  return outputs;
}

}  // namespace tw
