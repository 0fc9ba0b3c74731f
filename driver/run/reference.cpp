#include "driver/run/reference.h"

#include "passes/passes.h"

namespace tw {
namespace {

// Operators need no more than static shapes and live nodes to be lowered.
const std::vector<std::string> kPipeline = {"eliminate-dead-code", "fold-shapes", "fold-constants",
                                            "eliminate-dead-code"};

}  // namespace

Expected<ReferenceModel> ReferenceModel::compile(Model model, Target target, ReferenceKind kind) {
  TW_CHECK(kind != ReferenceKind::operators, "operators are evaluated, not compiled");
  const bool wide = kind == ReferenceKind::f64;
  CompileOptions options;
  options.pipeline = kPipeline;
  if (wide) options.pipeline.insert(options.pipeline.begin(), "widen-floats");
  options.plain = true;
  target.fast_math = false;
  TW_ASSIGN(CompiledNetwork network,
            CompiledNetwork::compile(std::move(model), std::move(options), target));
  return ReferenceModel(std::move(network), wide);
}

Expected<std::vector<Tensor>> ReferenceModel::run(Inputs inputs) const {
  if (wide_)
    for (Tensor& tensor : inputs.tensors) tensor = widened(tensor);
  return network_.run(std::move(inputs), 1);
}

std::optional<ReferenceKind> reference_from_name(std::string_view name) {
  if (name == "operators") return ReferenceKind::operators;
  if (name == "f64") return ReferenceKind::f64;
  if (name == "unoptimized") return ReferenceKind::unoptimized;
  return std::nullopt;
}

Expected<std::vector<Tensor>> reference_outputs(ReferenceKind kind, Model model, Inputs inputs,
                                                Target target) {
  switch (kind) {
    case ReferenceKind::operators: return evaluate(model.graph, inputs.tensors);
    case ReferenceKind::f64:
    case ReferenceKind::unoptimized: {
      TW_ASSIGN(const ReferenceModel reference,
                ReferenceModel::compile(std::move(model), std::move(target), kind));
      return reference.run(std::move(inputs));
    }
  }
  TW_UNREACHABLE("bad reference");
}

}  // namespace tw
