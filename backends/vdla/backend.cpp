#include "backends/vdla/backend.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "backends/vdla/assembly.h"
#include "backends/vdla/parameters.h"
#include "backends/vdla/stream.h"
#include "runtime/device/vdla_device.h"

namespace tw {
namespace {

using namespace vdla;

class VdlaBackend : public DeviceBackend {
 public:
  VdlaBackend(Target target, Device device) : target_(std::move(target)), device_(device) {}

  bool predicts_cycles() const override { return true; }
  Error supports(const Kernel& kernel) const override { return stream_of(kernel).takeError(); }

  Error accepts(const Kernel& kernel, std::span<const Constant> constants) const override {
    TW_ASSIGN(const auto stream, stream_of(kernel));
    return stream->parts.requant ? requant_table(kernel, stream->parts, constants).takeError()
                                 : Error::success();
  }

  Expected<std::vector<KernelReport>> compile(Program& program, int device, int) const override {
    DeviceProgram& out = program.devices[static_cast<size_t>(device) - 1];
    const std::vector<bool> here = kernels_of(program, device);
    std::vector<KernelReport> reports(program.kernels.size());
    std::vector<std::shared_ptr<const KernelStream>> streams;
    out.launches.assign(program.kernels.size(), {});
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      if (!here[k]) continue;
      const Kernel& kernel = program.kernels[k];
      TW_ASSIGN(auto stream, stream_of(kernel));
      forget(kernel);
      TW_TRY(add_parameters(program, device, static_cast<int>(k), stream->parts));
      DeviceLaunch launch{kernel.name, stream->parts.bases, {}};
      const auto params = std::ranges::count_if(
          kernel.buffers, [](const Buffer& b) { return b.role != BufferRole::temp; });
      // The table is one more argument, behind the kernel's own.
      std::ranges::replace(launch.buffers, kNoBuffer, static_cast<int>(params));
      out.launches[k].push_back(std::move(launch));
      TW_ASSIGN(const Cycles cycles,
                predict_cycles(device_.config, stream->instructions, device_.dram));
      reports[k] = {
          .name = kernel.name,
          .code_bytes = static_cast<int64_t>(stream->instructions.size()) * kInstructionBytes,
          .on_device = true,
          .instructions = static_cast<int64_t>(stream->instructions.size()),
          .cycles = static_cast<int64_t>(cycles.total)};
      streams.push_back(std::move(stream));
    }
    if (!streams.empty()) out.code = code_of(streams);
    return reports;
  }

 private:
  // Gives each call the table of its own constants, as one more argument.
  Error add_parameters(Program& program, int device, int kernel, const StreamParts& parts) const {
    if (!parts.requant) return Error::success();
    TW_TRY(add_parameters_to(program.calls, program, device, kernel, parts));
    for (Program& region : program.regions)
      TW_TRY(add_parameters_to(region.calls, program, device, kernel, parts));
    return Error::success();
  }

  Error add_parameters_to(std::vector<KernelCall>& calls, Program& program, int device, int kernel,
                          const StreamParts& parts) const {
    for (KernelCall& call : calls) {
      if (call.kernel != kernel || call.device != device || !call.is_launch()) continue;
      std::vector<Constant> constants;
      for (const Operand& operand : call.arguments) {
        const WeightPiece* piece = find_weights(program, device, operand);
        constants.push_back(piece ? Constant{piece->source, piece->pack} : Constant{});
      }
      TW_ASSIGN(std::vector<std::byte> table,
                requant_table(program.kernels[static_cast<size_t>(kernel)], parts, constants));
      auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(table));
      WeightPiece piece{0, bytes->size(), {bytes, *bytes}, nullptr, call.name + " requantization"};
      call.arguments.push_back(
          {Place::weights, 0,
           Expr(static_cast<int64_t>(add_weights(program, device, std::move(piece))))});
    }
    return Error::success();
  }

  std::string code_of(std::span<const std::shared_ptr<const KernelStream>> streams) const {
    const Config& c = device_.config;
    auto u = [](int value) { return static_cast<uint32_t>(value); };
    tw_vdla_code head{
        {'V', 'D', 'L', 'A'},
        TW_VDLA_CODE_VERSION,
        {u(c.block_in), u(c.block_out), u(c.bus_bytes), u(c.inp_depth), u(c.wgt_depth),
         u(c.acc_depth), u(c.prm_depth), u(c.queue_depth), u(c.requant_lanes)},
        device_.dram.latency,
        device_.dram.bytes_per_cycle,
        static_cast<uint32_t>(streams.size()),
        {}};
    target_.address.copy(head.address, sizeof head.address - 1);
    std::string code(reinterpret_cast<const char*>(&head), sizeof head);
    uint64_t at = (sizeof head + streams.size() * sizeof(tw_vdla_stream) + 63) / 64 * 64;
    for (const auto& stream : streams) {
      const size_t instructions = stream->instructions.size();
      const tw_vdla_stream place{at, static_cast<uint32_t>(instructions), 0};
      code.append(reinterpret_cast<const char*>(&place), sizeof place);
      at += instructions * kInstructionBytes;
    }
    code.resize((code.size() + 63) / 64 * 64);
    for (const auto& stream : streams) {
      const std::vector<uint8_t> bytes = to_bytes(stream->instructions);
      code.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return code;
  }

  // Makes each kernel's stream once. Placement asks if there is one, and for its constants.
  // compile() takes the stream and drops it, since a search has many.
  Expected<std::shared_ptr<const KernelStream>> stream_of(const Kernel& kernel) const {
    const std::string hash = kernel_hash(kernel);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = streams_.find(hash); known != streams_.end()) return known->second;
    }
    TW_ASSIGN(KernelStream stream, compile_stream(kernel, device_, target_));
    const std::lock_guard lock(mutex_);
    return streams_.try_emplace(hash, std::make_shared<const KernelStream>(std::move(stream)))
        .first->second;
  }

  void forget(const Kernel& kernel) const {
    const std::lock_guard lock(mutex_);
    streams_.erase(kernel_hash(kernel));
  }

  Target target_;
  Device device_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const KernelStream>> streams_;  // by kernel_hash
};

}  // namespace

Expected<std::unique_ptr<DeviceBackend>> make_vdla_backend(const Target& device) {
  for (const std::string& feature : device.features)
    return make_error({DiagCode::unsupported,
                       "device '" + device.name + "' has the unknown feature '" + feature + "'",
                       {},
                       {"the driver vdla has no features"}});
  TW_ASSIGN(const Device numbers, device_of(device));
  if (device.address.size() >= sizeof(tw_vdla_code::address))
    return make_error(DiagCode::unsupported, "device '{0}': the address '{1}' is too long",
                      device.name, device.address);
  return std::make_unique<VdlaBackend>(device, numbers);
}

}  // namespace tw
