// A model that is compiled to look at what it computes: in a temporary folder, for this machine.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/run/temporary_folder.h"
#include "driver/run/tensors.h"
#include "ir/target.h"
#include "packager/loaded_model.h"

namespace tw {

// What compiles it.
struct NetworkBuild {
  Target target;
  std::map<std::string, int64_t> dims;
};

class CompiledNetwork {
 public:
  // bytes: an ONNX model.
  static Expected<CompiledNetwork> compile(const std::string& bytes, const NetworkBuild& build);
  std::vector<TensorSpec> inputs() const { return input_specs(model_->api()); }
  Expected<std::vector<Tensor>> run(const Inputs& inputs) const;

 private:
  CompiledNetwork(TemporaryFolder folder, std::unique_ptr<LoadedModel> model)
      : folder_(std::move(folder)), model_(std::move(model)) {}
  TemporaryFolder folder_;
  std::unique_ptr<LoadedModel> model_;
};

}  // namespace tw
