#include "backends/opencl/backend.h"

#include <algorithm>

#include "backends/device/launch.h"
#include "backends/opencl/opencl.h"

namespace tw {
namespace {

DeviceLaunch launch_of(const OpenClLaunch& launch) {
  DeviceLaunch out{launch.function, {}, {}, launch.global, launch.local};
  for (const OpenClArgument& argument : launch.arguments) {
    TW_CHECK(argument.kind == OpenClArgument::Kind::symbol || out.symbols.empty(),
             "'{0}' has a buffer behind a symbol", launch.function);
    switch (argument.kind) {
      case OpenClArgument::Kind::buffer: out.buffers.push_back(argument.index); break;
      case OpenClArgument::Kind::workspace: out.buffers.push_back(-1); break;
      case OpenClArgument::Kind::symbol: out.symbols.push_back(argument.index); break;
    }
  }
  return out;
}

class OpenClBackend : public DeviceBackend {
 public:
  explicit OpenClBackend(Target device) : device_(std::move(device)) {}

  Error supports(const Kernel& kernel) const override {
    return emit_opencl(kernel, device_, "k").takeError();
  }

  Expected<std::vector<KernelReport>> compile(Program& program, int device, int) const override {
    DeviceProgram& out = program.devices[static_cast<size_t>(device) - 1];
    const std::vector<bool> here = kernels_of(program, device);
    std::vector<KernelReport> reports(program.kernels.size());
    std::vector<OpenClSource> sources;
    out.launches.assign(program.kernels.size(), {});
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      if (!here[k]) continue;
      TW_ASSIGN(OpenClSource source,
                emit_opencl(program.kernels[k], device_, "k" + std::to_string(k)));
      for (const OpenClLaunch& launch : source.launches)
        out.launches[k].push_back(launch_of(launch));
      reports[k].name = program.kernels[k].name;
      TW_ASSIGN(reports[k].one_thread, device::runs_in_one_thread(program.kernels[k], device_));
      reports[k].code_bytes = static_cast<int64_t>(source.text.size());
      for (const OpenClLaunch& launch : source.launches)
        reports[k].shared_bytes = std::max(reports[k].shared_bytes, launch.local_bytes);
      sources.push_back(std::move(source));
    }
    if (!sources.empty()) out.code = opencl_program(sources);
    return reports;
  }

 private:
  Target device_;
};

}  // namespace

Expected<std::unique_ptr<DeviceBackend>> make_opencl_backend(const Target& device) {
  for (const std::string& feature : device.features)
    if (feature != "fp16" && feature != "fp64")
      return make_error({DiagCode::unsupported,
                         "device '" + device.name + "' has the unknown feature '" + feature + "'",
                         {},
                         {"features of the driver opencl: fp16, fp64"}});
  TW_TRY(check_emits(device, "none", [](const Intrinsic&) { return false; }));
  return std::make_unique<OpenClBackend>(device);
}

}  // namespace tw
