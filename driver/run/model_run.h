// One context of a loaded model with its tensors in place: the common part of run, verify and
// bench.
#pragma once
#include <memory>
#include <span>

#include "driver/run/tensors.h"
#include "runtime/tilewright.h"

namespace tw {

class ModelRun {
 public:
  // threads, parallel: as in tw_options. The api and the pool must outlive this object. Errors: the
  // artifact refuses its arguments.
  static Expected<ModelRun> create(const tw_api& api, Inputs inputs, int threads,
                                   const tw_parallel* parallel = nullptr);

  Error run();
  Error profile(std::span<uint64_t> call_ns);  // api.call_count entries
  const std::vector<Tensor>& outputs() const { return outputs_; }
  const tw_api& api() const { return *api_; }
  tw_device_stats device_stats(int32_t device) const;  // counts of the last run
  const Symbols& symbols() const { return inputs_.symbols; }

 private:
  ModelRun(const tw_api& api, Inputs inputs) : api_(&api), inputs_(std::move(inputs)) {}
  Error allocate_outputs();
  Error check(tw_status status) const;

  struct Destroy {
    const tw_api* api;
    void operator()(tw_context* context) const { api->destroy(context); }
  };
  const tw_api* api_;
  Inputs inputs_;
  std::vector<Tensor> outputs_;
  std::vector<int64_t> symbols_;
  std::vector<tw_tensor> input_views_, output_views_;
  std::unique_ptr<tw_context, Destroy> context_;
};

}  // namespace tw
