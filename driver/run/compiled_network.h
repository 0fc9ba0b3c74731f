// Compiles a model for this machine into a temporary folder, to look at what it computes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "driver/compile/compile.h"
#include "driver/run/tensors.h"
#include "packager/loaded_model.h"
#include "support/temporary_folder.h"

namespace tw {

class CompiledNetwork {
 public:
  // Compiles the file options.model. Ignores what the options say about outputs.
  static Expected<CompiledNetwork> compile(CompileOptions options, const Target& target);
  static Expected<CompiledNetwork> compile(Model model, CompileOptions options,
                                           const Target& target);
  static Expected<CompiledNetwork> compile(const std::string& bytes, CompileOptions options,
                                           const Target& target);

  const tw_api& api() const { return model_->api(); }
  const CompileReport& report() const { return report_; }
  Expected<std::vector<Tensor>> run(Inputs inputs, int threads = 0) const;

 private:
  CompiledNetwork(TemporaryFolder folder, CompileReport report, LoadedModel model)
      : folder_(std::move(folder)),
        report_(std::move(report)),
        model_(std::make_unique<LoadedModel>(std::move(model))) {}
  static Expected<CompiledNetwork> load(TemporaryFolder folder, CompileReport report);

  TemporaryFolder folder_;
  CompileReport report_;
  std::unique_ptr<LoadedModel> model_;
};

// The outputs of one run of a library; threads 0: as many as there are cores
Expected<std::vector<Tensor>> outputs_of(const tw_api& api, Inputs inputs, int threads);

}  // namespace tw
