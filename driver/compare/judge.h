// Judges a library: how far its outputs are from what its model computes.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/compare/compare.h"
#include "driver/compile/manifest.h"
#include "driver/compile/stage_clock.h"
#include "driver/run/reference.h"

namespace tw {

struct VerifiedOutput {
  std::string name;
  // The difference from the reference; if that is over the tolerance, from the model in f64
  Difference difference;
  // How far unoptimized code, or the evaluators, in the model's own types are from f64. It is known
  // if the library is over the tolerance: an ill-conditioned model is not the library's fault.
  std::optional<Difference> unoptimized{};

  // True within the tolerance, or if the model's own types are as far off: the library's largest
  // difference and root mean square are at most four times theirs, and beyond a tenth of the range
  // at most twice.
  bool same() const;
  // True if the model's own types are so far off that the inputs say little about the library.
  bool says_little() const;
};
std::string to_string(const VerifiedOutput& output);  // numbers in a line
Json to_json(const VerifiedOutput& output);

// Outputs of the model itself, and the inputs in the order of its graph
struct ModelReference {
  std::vector<Tensor> outputs;
  Inputs inputs;
};

// Judges outputs by the model that the library was compiled from. References are compiled when they
// are first needed, and run on each judged set of inputs.
class Judge {
 public:
  struct Request {
    std::string model;  // the ONNX file
    Manifest manifest;  // the library's: how sizes and inputs of the model are bound
    ReferenceKind reference = ReferenceKind::f64;
    double tolerance = 1e-4;  // share of an output's range
  };
  // stage is told of "import" and "reference"; it may be null.
  Judge(Request request, OnStage stage) : request_(std::move(request)), stage_(std::move(stage)) {}

  // True if the library was compiled from this very file.
  Expected<bool> is_the_model();
  // got: the library's outputs for these inputs, which are in the order of `specs`
  Expected<std::vector<VerifiedOutput>> judge(const std::vector<Tensor>& got, const Inputs& inputs,
                                              const std::vector<TensorSpec>& specs);
  // The reference for the inputs that were judged last.
  const ModelReference& last() const { return last_; }

 private:
  Expected<Model> import();
  Expected<std::vector<Tensor>> outputs_by(ReferenceKind kind);
  // Runs the evaluators; with `wide`, every float is f64.
  Expected<std::vector<Tensor>> evaluated(bool wide);

  Request request_;
  OnStage stage_;
  std::optional<bool> same_model_;
  std::optional<ReferenceModel> exact_, own_;
  std::vector<std::string> input_names_;  // in the graph's order
  ModelReference last_;
};

}  // namespace tw
