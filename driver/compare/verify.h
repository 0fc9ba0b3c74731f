// A compiled model against stored outputs, or against the reference evaluation of its ONNX file.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/compare/judge.h"
#include "driver/compare/per_node.h"
#include "driver/run/library_runs.h"

namespace tw {

struct VerifyRequest {
  std::string library, model;  // model: the ONNX file; "": there are stored outputs
  InputSources inputs;
  ReferenceKind reference = ReferenceKind::f64;
  double tolerance = 1e-4;
  LibraryPlace place;
  bool check = true;      // the library's bytes
  bool per_node = false;  // verify_nodes() follows: the reference is needed whatever is stored
};

struct VerifyReport {
  std::vector<VerifiedOutput> outputs;
  bool stored = false;  // they were compared with stored ones
  Manifest manifest;    // of the library
  std::string machine;  // that ran it
  std::optional<ModelReference> reference;
  bool same() const;
};
// stage is told of "import" and "reference", warn of a library that is not of the model as it is
// now and of inputs that say little; both may be null.
// Integers that --random makes up are 0 and 1: a warning for each such input.
std::vector<std::string> made_up_integers(const std::vector<TensorSpec>& specs,
                                          const InputSources& sources);
// A warning for each output of which the inputs say little.
std::vector<std::string> little_said(const std::vector<VerifiedOutput>& outputs);
Expected<VerifyReport> verify_model(const VerifyRequest& request, const OnStage& stage,
                                    const std::function<void(const std::string&)>& warn);

// Which fused group is off, of a report with a reference.
Expected<PerNodeReport> verify_nodes(const VerifyRequest& request, const VerifyReport& report);

}  // namespace tw
