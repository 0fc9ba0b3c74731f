// A library whose kernel runs on a device, in the measuring process: the runtime's own way there,
// the kernel's call alone is counted.
#pragma once
#include <memory>
#include <vector>

#include "autotune/measure/job_memory.h"
#include "runtime/tilewright.h"

namespace tw {

class DeviceRun {
 public:
  // memory: holds the inputs and outputs; must outlive this. Errors: no device, or not these
  // tensors.
  static Expected<DeviceRun> create(tw_query_fn query, const MeasureJob& job, JobMemory& memory);
  double run(int64_t runs);  // seconds of the kernel in all; negative: a run has failed

 private:
  struct Destroy {
    const tw_api* api;
    void operator()(tw_context* context) const { api->destroy(context); }
  };
  const tw_api* api_ = nullptr;
  std::vector<int64_t> counts_;  // of elements, by tensor
  std::vector<tw_tensor> inputs_, outputs_;
  std::vector<uint64_t> call_ns_;
  std::unique_ptr<tw_context, Destroy> context_;
};

}  // namespace tw
