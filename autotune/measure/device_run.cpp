#include "autotune/measure/device_run.h"

namespace tw {

Expected<DeviceRun> DeviceRun::create(tw_query_fn query, const MeasureJob& job, JobMemory& memory) {
  DeviceRun run;
  run.api_ = query(TW_ABI_VERSION);
  if (!run.api_)
    return make_error(DiagCode::unsupported, "the library serves another version of the interface");
  const tw_api& api = *run.api_;
  void* const* parameters = memory.parameters(0);
  for (size_t i = 0; i < job.buffers.size(); ++i) {
    const BufferSpec& buffer = job.buffers[i];
    if (buffer.constant) continue;  // constants are in the library
    std::vector<tw_tensor>& tensors = buffer.input ? run.inputs_ : run.outputs_;
    const size_t at = tensors.size(),
                 count = static_cast<size_t>(buffer.input ? api.input_count : api.output_count);
    if (at >= count)
      return make_error(DiagCode::invalid_argument, "the library has other tensors than the job");
    const tw_tensor_info& info = (buffer.input ? api.inputs : api.outputs)[at];
    tensors.push_back({parameters[i], buffer.bytes, info.dtype, info.rank, info.dims});
  }
  if (run.inputs_.size() != static_cast<size_t>(api.input_count) ||
      run.outputs_.size() != static_cast<size_t>(api.output_count))
    return make_error(DiagCode::invalid_argument, "the library has other tensors than the job");
  run.call_ns_.resize(static_cast<size_t>(api.call_count));
  tw_options options{};
  options.size = sizeof options;
  options.threads = 1;
  tw_context* context = nullptr;
  if (api.create(&options, &context) != TW_OK)
    return make_error(DiagCode::unsupported, "the device does not take it: {0}",
                      api.last_error(nullptr));
  run.context_ = std::unique_ptr<tw_context, Destroy>(context, Destroy{run.api_});
  return run;
}

double DeviceRun::run(int64_t runs) {
  uint64_t ns = 0;
  for (int64_t i = 0; i < runs; ++i) {
    if (api_->profile(context_.get(), inputs_.data(), outputs_.data(), call_ns_.data()) != TW_OK)
      return -1;
    ns += call_ns_[inputs_.size()];  // the kernel's call comes behind the copies of the inputs
  }
  return static_cast<double>(ns) * 1e-9;
}

}  // namespace tw
