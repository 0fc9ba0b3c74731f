// References for `verify`: the model's outputs, in graph order, for the same inputs.
#pragma once
#include <optional>
#include <string_view>

#include "driver/run/compiled_network.h"
#include "frontend/frontend.h"

namespace tw {

enum class ReferenceKind : uint8_t {
  // Every operator by its evaluator: sums in f64, each operator's result rounded to its type
  operators,
  // The whole model in f64; only quantized values are rounded to less on the way
  f64,
  unoptimized  // as f64, but in the model's own types
};
// "operators", "f64", "unoptimized"
std::optional<ReferenceKind> reference_from_name(std::string_view name);

// Evaluating a large model operator by operator takes minutes, so the other kinds are compiled for
// `target`, which must be this machine: a kernel for each operator, plain layouts, direct sums
// under one schedule rule, one thread, no fast math. They share the import, the lowering of single
// operators, schedule primitives and LLVM with the artifact, but no fusion, layout, algorithm or
// search space. With f64 every float tensor is f64, inputs and outputs included.
class ReferenceModel {
 public:
  // kind: f64 or unoptimized.
  static Expected<ReferenceModel> compile(Model model, Target target,
                                          ReferenceKind kind = ReferenceKind::f64);
  Expected<std::vector<Tensor>> run(Inputs inputs) const;

 private:
  ReferenceModel(CompiledNetwork network, bool wide) : network_(std::move(network)), wide_(wide) {}
  CompiledNetwork network_;
  bool wide_;
};

Expected<std::vector<Tensor>> reference_outputs(ReferenceKind kind, Model model, Inputs inputs,
                                                Target target);

}  // namespace tw
