// A library's outputs against what its model computes.
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
  // From the reference; where that is over the tolerance, from the model in f64
  Difference difference;
  // The difference of unoptimized code, or of the evaluators, in the model's own types from f64;
  // known where the library's from the reference is over the tolerance. An ill-conditioned model is
  // not the library's fault.
  std::optional<Difference> unoptimized{};

  // Within the tolerance, or the model's own types are as far off: both the largest difference and
  // the root mean square are at most four times theirs, or twice from a tenth of the range on.
  bool same() const;
  // The model's own types are so far off that the inputs say little of the library.
  bool says_little() const;
};
std::string to_string(const VerifiedOutput& output);  // numbers in a line
Json to_json(const VerifiedOutput& output);

// The model's own results, with the inputs in its graph's order.
struct ModelReference {
  std::vector<Tensor> outputs;
  Inputs inputs;
};

// The model that a library was compiled from. References are compiled when they are first needed,
// and run on each of the inputs that are judged.
class Judge {
 public:
  struct Request {
    std::string model;  // the ONNX file
    Manifest manifest;  // of the library: how the model's sizes and inputs are bound
    ReferenceKind reference = ReferenceKind::f64;
    double tolerance = 1e-4;  // of an output's range
  };
  // stage is told of "import" and "reference"; it may be null.
  Judge(Request request, OnStage stage) : request_(std::move(request)), stage_(std::move(stage)) {}

  // True where the library was compiled from this very file.
  Expected<bool> is_the_model();
  // got: the library's outputs for these inputs, which are in the order of `specs`.
  Expected<std::vector<VerifiedOutput>> judge(const std::vector<Tensor>& got, const Inputs& inputs,
                                              const std::vector<TensorSpec>& specs);
  // The reference for the inputs that were judged last.
  const ModelReference& last() const { return last_; }

 private:
  Expected<Model> import();
  Expected<std::vector<Tensor>> outputs_by(ReferenceKind kind);
  // By the evaluators, every float as f64 where `wide`.
  Expected<std::vector<Tensor>> evaluated(bool wide);

  Request request_;
  OnStage stage_;
  std::optional<bool> same_model_;
  std::optional<ReferenceModel> exact_, own_;
  std::vector<std::string> input_names_;  // in the graph's order
  ModelReference last_;
};

}  // namespace tw
