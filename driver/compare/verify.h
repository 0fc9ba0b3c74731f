// Verifies a compiled model by stored outputs, or by the reference evaluation of its ONNX file.
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
  bool check = true;      // check the hash of the library's bytes
  bool per_node = false;  // verify_nodes() follows, which needs the reference
};

struct VerifyReport {
  std::vector<VerifiedOutput> outputs;
  bool stored = false;  // outputs were compared with stored ones
  Manifest manifest;
  std::string machine;  // machine that ran the library
  std::optional<ModelReference> reference;
  bool same() const;
};
// A warning for each integer input that --random makes up: it consists of 0 and 1.
std::vector<std::string> made_up_integers(const std::vector<TensorSpec>& specs,
                                          const InputSources& sources);
// A warning for each output about which the inputs say little
std::vector<std::string> little_said(const std::vector<VerifiedOutput>& outputs);
// stage is told of "import" and "reference". warn is told if the file is not the model that was
// compiled, and if inputs say little. Both may be null.
Expected<VerifyReport> verify_model(const VerifyRequest& request, const OnStage& stage,
                                    const std::function<void(const std::string&)>& warn);

// Finds the first fused group that is off. The report must have a reference.
Expected<PerNodeReport> verify_nodes(const VerifyRequest& request, const VerifyReport& report);

}  // namespace tw
