// What `verify` compares with: the model's outputs, in graph order, for the same inputs.
#pragma once
#include <optional>
#include <string_view>

#include "driver/run/compiled_network.h"
#include "frontend/frontend.h"

namespace tw {

enum class ReferenceKind : uint8_t {
  // Every operator by its evaluator: sums in f64, each operator's result rounded to its type
  operators,
  f64  // the whole model in f64, nothing rounded to less on the way but what is quantized
};
std::optional<ReferenceKind> reference_from_name(std::string_view name);  // "operators", "f64"

// Evaluating a large model operator by operator takes minutes, so f64 is compiled for `target`,
// which this machine must be: every float tensor f64, an operator a kernel, plain layouts, direct
// sums under one schedule rule, one thread, no fast math. With the artifact it shares the import,
// the lowering of single operators, primitives of schedules and LLVM, but no fusion, layout,
// algorithm or search space. Its outputs are f64.
class ReferenceModel {
 public:
  static Expected<ReferenceModel> compile(Model model, Target target);
  Expected<std::vector<Tensor>> run(Inputs inputs) const;

 private:
  explicit ReferenceModel(CompiledNetwork network) : network_(std::move(network)) {}
  CompiledNetwork network_;
};

Expected<std::vector<Tensor>> reference_outputs(ReferenceKind kind, Model model, Inputs inputs,
                                                Target target);

}  // namespace tw
