#include "autotune/measure/cycles.h"

#include <algorithm>

#include "support/parallel.h"

namespace tw {
namespace {

Expected<uint64_t> bytes_of(const Buffer& buffer) {
  uint64_t bytes = static_cast<uint64_t>(dtype_bytes(buffer.dtype));
  for (const Expr& extent : buffer.shape) {
    const std::optional<int64_t> size = as_const(extent);
    if (!size) return make_error(DiagCode::unsupported, "buffer '{0}' has an extent that is known at run time only", buffer.name);
    bytes *= static_cast<uint64_t>(*size);
  }
  return bytes;
}

// The program that calls the kernel once on its only device.
Expected<Program> program_of(const Kernel& kernel, const std::vector<Constant>& constants) {
  Program program;
  program.kernels = {kernel};
  program.devices.resize(1);
  KernelCall call;
  call.device = call.from = 1;
  call.name = kernel.name;
  for (size_t i = 0; i < kernel.buffers.size() && kernel.buffers[i].role != BufferRole::temp; ++i) {
    const bool constant = i < constants.size() && !constants[i].source.bytes.empty();
    if (!constant) {
      call.arguments.push_back({Place::arena, 0, 0});
      continue;
    }
    TW_ASSIGN(const uint64_t bytes, bytes_of(kernel.buffers[i]));
    const uint64_t offset = add_weights(program, 1, {0, bytes, constants[i].source, constants[i].pack, kernel.buffers[i].name});
    call.arguments.push_back({Place::weights, 0, Expr(static_cast<int64_t>(offset))});
  }
  program.calls.push_back(std::move(call));
  return program;
}

}  // namespace

CycleMeasurer::CycleMeasurer(std::shared_ptr<const DeviceBackend> backend, const Target& device, std::vector<Constant> constants, int jobs)
    : backend_(std::move(backend)), device_(device.name + " " + codegen_hash(device)), constants_(std::move(constants)), jobs_(jobs) {}

std::vector<MeasureResult> CycleMeasurer::measure(std::span<const std::shared_ptr<const Kernel>> kernels, const Reference&) {
  std::vector<MeasureResult> results(kernels.size());
  llvm::cantFail(parallel_for(jobs_, kernels.size(), [&](size_t i) -> Error {
    results[i].device = device_;
    Expected<double> seconds = seconds_of(*kernels[i]);
    if (seconds) {
      results[i].seconds = {*seconds};
      return Error::success();
    }
    results[i].status = Status::compile_error;
    results[i].error = error_text(seconds.takeError());
    std::ranges::replace(results[i].error, '\n', ' ');
    return Error::success();
  }));
  return results;
}

Expected<double> CycleMeasurer::seconds_of(const Kernel& kernel) const {
  TW_TRY(backend_->supports(kernel));
  TW_ASSIGN(Program program, program_of(kernel, constants_));
  TW_ASSIGN(const std::vector<KernelReport> reports, backend_->compile(program, 1, 1));
  if (reports.size() != 1 || reports.front().cycles <= 0)
    return make_error(DiagCode::unsupported, "the device's code generator does not say how many cycles kernel '{0}' takes", kernel.name);
  return static_cast<double>(reports.front().cycles) * kCycleSeconds;
}

}  // namespace tw
