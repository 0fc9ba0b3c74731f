// Runs a library with a kernel for a device, in the measuring process. It uses the runtime as any
// program does, but counts the time of the kernel's call alone.
#pragma once
#include <memory>
#include <vector>

#include "autotune/measure/job_memory.h"
#include "runtime/tilewright.h"

namespace tw {

class DeviceRun {
 public:
  // `memory` holds the inputs and outputs, and must outlive this. Errors: no device, or a library
  // with other tensors.
  static Expected<DeviceRun> create(tw_query_fn query, const MeasureJob& job, JobMemory& memory);
  double run(int64_t runs);  // total seconds of the kernel; negative: a run has failed

 private:
  struct Destroy {
    const tw_api* api;
    void operator()(tw_context* context) const { api->destroy(context); }
  };
  const tw_api* api_ = nullptr;
  std::vector<int64_t> counts_;  // elements, by tensor
  std::vector<tw_tensor> inputs_, outputs_;
  std::vector<uint64_t> call_ns_;
  std::unique_ptr<tw_context, Destroy> context_;
};

}  // namespace tw
