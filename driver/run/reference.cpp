#include "driver/run/reference.h"

#include "driver/compile/compile.h"
#include "driver/run/model_run.h"
#include "driver/run/temporary_folder.h"
#include "packager/loaded_model.h"
#include "passes/passes.h"

namespace tw {
namespace {

// Operators need no more than static shapes and live nodes to be lowered.
const std::vector<std::string> kPipeline = {"widen-floats", "eliminate-dead-code", "fold-shapes",
                                            "fold-constants", "eliminate-dead-code"};

Expected<std::vector<Tensor>> run_in_f64(Model model, Inputs inputs, Target target) {
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  CompileOptions options;
  options.name = "reference";
  options.output = folder.path() + "/reference.so";
  options.pipeline = kPipeline;
  options.plain = true;
  target.fast_math = false;
  TW_ASSIGN(const CompileReport compiled, compile_graph(std::move(model), options, target));
  TW_ASSIGN(const LoadedModel library, LoadedModel::open(compiled.output, Integrity::trust));
  for (Tensor& tensor : inputs.tensors) tensor = widened(tensor);
  TW_ASSIGN(ModelRun run, ModelRun::create(library.api(), std::move(inputs), 1));
  TW_TRY(run.run());
  return run.outputs();
}

}  // namespace

std::optional<ReferenceKind> reference_from_name(std::string_view name) {
  if (name == "operators") return ReferenceKind::operators;
  if (name == "f64") return ReferenceKind::f64;
  return std::nullopt;
}

Expected<std::vector<Tensor>> reference_outputs(ReferenceKind kind, Model model, Inputs inputs,
                                                Target target) {
  switch (kind) {
    case ReferenceKind::operators: return evaluate(model.graph, inputs.tensors);
    case ReferenceKind::f64:
      return run_in_f64(std::move(model), std::move(inputs), std::move(target));
  }
  TW_UNREACHABLE("bad reference");
}

}  // namespace tw
