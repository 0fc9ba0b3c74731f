// A compiled model against stored outputs, or against the reference evaluation of its ONNX file.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/compare/per_node.h"
#include "driver/compile/manifest.h"
#include "driver/compile/stage_clock.h"
#include "driver/run/reference.h"

namespace tw {

struct VerifyRequest {
  std::string library, model;  // model: the ONNX file; "": there are stored outputs
  InputSources inputs;
  ReferenceKind reference = ReferenceKind::f64;
  double tolerance = 1e-4;
  int threads = 0;
  bool check = true;      // the library's bytes
  bool per_node = false;  // verify_nodes() follows: the reference is needed whatever is stored
};

// What the model itself computes, with the inputs in its graph's order.
struct ModelReference {
  std::vector<Tensor> outputs;
  Inputs inputs;
};

struct VerifiedOutput {
  std::string name;
  Difference difference;
};
struct VerifyReport {
  std::vector<VerifiedOutput> outputs;
  bool stored = false;  // they were compared with stored ones
  Manifest manifest;    // of the library
  std::optional<ModelReference> reference;
  bool same() const;
};
// stage is told of "import" and "reference", warn of a library that is not of the model as it is
// now; both may be null.
Expected<VerifyReport> verify_model(const VerifyRequest& request, const OnStage& stage,
                                    const std::function<void(const std::string&)>& warn);

// Which fused group is off, of a report with a reference.
Expected<PerNodeReport> verify_nodes(const VerifyRequest& request, const VerifyReport& report);

}  // namespace tw
