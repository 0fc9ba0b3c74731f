#include "driver/run/reference.h"

#include "passes/passes.h"

namespace tw {
namespace {

// Operators need no more than static shapes and live nodes to be lowered.
const std::vector<std::string> kPipeline = {"widen-floats", "eliminate-dead-code", "fold-shapes",
                                            "fold-constants", "eliminate-dead-code"};

}  // namespace

Expected<ReferenceModel> ReferenceModel::compile(Model model, Target target) {
  CompileOptions options;
  options.pipeline = kPipeline;
  options.plain = true;
  target.fast_math = false;
  TW_ASSIGN(CompiledNetwork network,
            CompiledNetwork::compile(std::move(model), std::move(options), target));
  return ReferenceModel(std::move(network));
}

Expected<std::vector<Tensor>> ReferenceModel::run(Inputs inputs) const {
  for (Tensor& tensor : inputs.tensors) tensor = widened(tensor);
  return network_.run(std::move(inputs), 1);
}

std::optional<ReferenceKind> reference_from_name(std::string_view name) {
  if (name == "operators") return ReferenceKind::operators;
  if (name == "f64") return ReferenceKind::f64;
  return std::nullopt;
}

Expected<std::vector<Tensor>> reference_outputs(ReferenceKind kind, Model model, Inputs inputs,
                                                Target target) {
  switch (kind) {
    case ReferenceKind::operators: return evaluate(model.graph, inputs.tensors);
    case ReferenceKind::f64: {
      TW_ASSIGN(const ReferenceModel reference,
                ReferenceModel::compile(std::move(model), std::move(target)));
      return reference.run(std::move(inputs));
    }
  }
  TW_UNREACHABLE("bad reference");
}

}  // namespace tw
