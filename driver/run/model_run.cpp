#include "driver/run/model_run.h"

#include "ir/dim_names.h"

#include <algorithm>
#include "ir/graph/strings.h"

namespace tw {
namespace {

alignas(64) std::byte empty_tensor;  // tensors without elements point here

DiagCode code_of(tw_status status) {
  switch (status) {
    case TW_OK:
    case TW_E_ARGUMENT:
    case TW_E_DTYPE:
    case TW_E_SHAPE:
    case TW_E_SIZE:
    case TW_E_BUSY:
    case TW_E_DAMAGED: return DiagCode::invalid_argument;
    case TW_E_VERSION:
    case TW_E_DEVICE:
    case TW_E_UNSUPPORTED:
    case TW_E_CPU: return DiagCode::unsupported;
    case TW_E_CANCELLED:
    case TW_E_MEMORY: return DiagCode::limit;
  }
  return DiagCode::invalid_argument;  // the number came from a library of another version
}

bool is_known(const std::vector<int64_t>& shape) { return std::ranges::count(shape, -1) == 0; }

tw_tensor view_of(Tensor& t) {
  // The run allocates this output, in the library's memory.
  if (!is_known(t.shape))
    return {nullptr, 0, dtype_info(t.dtype).onnx, static_cast<int32_t>(t.shape.size()), nullptr};
  return {t.bytes.empty() ? &empty_tensor : t.bytes.data(), t.bytes.size(),
          dtype_info(t.dtype).onnx, static_cast<int32_t>(t.shape.size()), t.shape.data()};
}

}  // namespace

Expected<ModelRun> ModelRun::create(const tw_api& api, Inputs inputs, int threads,
                                    const tw_parallel* parallel) {
  ModelRun run(api, std::move(inputs));
  for (int32_t i = 0; i < api.symbol_count; ++i) {
    const auto value = run.inputs_.symbols.find(api.symbols[i]);
    if (value == run.inputs_.symbols.end())
      return make_error(DiagCode::invalid_argument, "the dimension '{0}' is free: give {1}",
                        api.symbols[i], dim_flag(api.symbols[i]));
    run.symbols_.push_back(value->second);
  }
  for (Tensor& t : run.inputs_.tensors) run.input_views_.push_back(view_of(t));
  tw_options options{};
  options.size = sizeof options;
  options.threads = threads;
  options.parallel = parallel;
  options.symbols = run.symbols_.empty() ? nullptr : run.symbols_.data();
  tw_context* context = nullptr;
  TW_TRY(run.check(api.create(&options, &context)));
  run.context_ = {context, Destroy{&api}};
  TW_TRY(run.allocate_outputs());  // after the context has checked that the sizes fit
  for (Tensor& t : run.outputs_) run.output_views_.push_back(view_of(t));
  return run;
}

Error ModelRun::allocate_outputs() {
  for (int32_t i = 0; i < api_->output_count; ++i) {
    const tw_tensor_info& info = api_->outputs[i];
    const std::optional<DType> dtype = dtype_from_onnx(info.dtype);
    if (!dtype)
      return make_error(DiagCode::unsupported,
                        "output '{0}' has element type {1}, which is not known here", info.name,
                        info.dtype);
    std::vector<int64_t> shape(static_cast<size_t>(info.rank));
    api_->output_dims(i, symbols_.data(), shape.data());
    if (is_known(shape))
      TW_TRY(check_countable(std::string("output '") + info.name + "'", *dtype, shape));
    outputs_.push_back(is_known(shape) ? Tensor::zeros(*dtype, std::move(shape))
                                       : Tensor{*dtype, std::move(shape), {}});
  }
  return Error::success();
}

Error ModelRun::check(tw_status status) const {
  if (status == TW_OK) return Error::success();
  const char* detail = api_->last_error(context_.get());
  return make_error(code_of(status), "the model does not run: {0}",
                    detail && *detail ? detail : api_->status_text(status));
}

tw_device_stats ModelRun::device_stats(int32_t device) const {
  tw_device_stats stats{};
  api_->device_stats(context_.get(), device, &stats);
  return stats;
}

Error ModelRun::run() {
  TW_TRY(check(api_->run(context_.get(), input_views_.data(), output_views_.data())));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (output_views_[i].data) continue;
    void* data = nullptr;
    TW_TRY(check(api_->output_of_run(context_.get(), static_cast<int32_t>(i),
                                     outputs_[i].shape.data(), &data)));
    const auto* bytes = static_cast<const std::byte*>(data);
    const int64_t size = element_count(std::span<const int64_t>(outputs_[i].shape)) *
                         dtype_bytes(outputs_[i].dtype);
    outputs_[i].bytes.assign(bytes, bytes + size);
  }
  std::ranges::for_each(outputs_, intern_strings);
  return Error::success();
}

Error ModelRun::profile(std::span<uint64_t> call_ns) {
  TW_CHECK(call_ns.size() == static_cast<size_t>(api_->call_count), "{0} slots for {1} calls",
           call_ns.size(), api_->call_count);
  return check(
      api_->profile(context_.get(), input_views_.data(), output_views_.data(), call_ns.data()));
}

}  // namespace tw
