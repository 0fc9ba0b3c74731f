#include "backends/vdla/config.h"

#include <algorithm>

#include "backends/backend.h"
#include "ir/schedule/intrinsic.h"

namespace tw::vdla {
namespace {

Error parameter(const Target& device, const char* name, int64_t& value) {
  const std::optional<int64_t> given = device.parameter(name);
  if (!given)
    return make_error(DiagCode::unsupported, "device '{0}' needs the parameter '{1}'", device.name,
                      name);
  value = *given;
  return Error::success();
}

}  // namespace

const char* scope_of(Space space) {
  switch (space) {
    case Space::inp: return "sram.inp";
    case Space::wgt: return "sram.wgt";
    case Space::acc: return "sram.acc";
    case Space::prm: return "sram.prm";
    case Space::dram: return "global";
  }
  TW_UNREACHABLE("bad space");
}

Expected<Device> device_of(const Target& target) {
  constexpr const char* kNames[] = {"bus_bytes", "queue_depth", "requant_lanes", "latency",
                                    "bytes_per_cycle"};
  for (const auto& [name, value] : target.parameters)
    if (std::ranges::find(kNames, name) == std::end(kNames))
      return make_error({DiagCode::unsupported,
                         "device '" + target.name + "' has the unknown parameter '" + name + "'",
                         {},
                         {"parameters of the driver vdla: bus_bytes, queue_depth, requant_lanes, "
                          "latency, bytes_per_cycle"}});
  int64_t numbers[5];
  for (size_t i = 0; i < 5; ++i) TW_TRY(parameter(target, kNames[i], numbers[i]));
  Device device;
  device.config.bus_bytes = static_cast<int>(numbers[0]);
  device.config.queue_depth = static_cast<int>(numbers[1]);
  device.config.requant_lanes = static_cast<int>(numbers[2]);
  device.dram = {static_cast<uint32_t>(numbers[3]), static_cast<uint32_t>(numbers[4])};
  TW_TRY(check_emits(target, kGemm + std::string(" and ") + kMax, [](const Intrinsic& intrinsic) {
    return intrinsic.emit == kGemm || intrinsic.emit == kMax;
  }));
  for (const Intrinsic& intrinsic : target.intrinsics) {
    if (intrinsic.emit != kGemm) continue;
    TW_ASSIGN(const std::shared_ptr<const Kernel> kernel, semantics_of(intrinsic));
    for (const Buffer& buffer : kernel->buffers) {  // the array is as large as its weights
      if (buffer.shape.size() != 2 || !as_const(buffer.shape[0]) || !as_const(buffer.shape[1]))
        continue;
      device.config.block_out = static_cast<int>(*as_const(buffer.shape[0]));
      device.config.block_in = static_cast<int>(*as_const(buffer.shape[1]));
    }
  }
  for (Space space : {Space::inp, Space::wgt, Space::acc, Space::prm}) {
    const MemoryScope* scope = target.find_scope(scope_of(space));
    if (!scope || scope->bytes == 0)
      return make_error(DiagCode::unsupported, "device '{0}' needs the size of the memory '{1}'",
                        target.name, scope_of(space));
    const int elements = static_cast<int>(scope->bytes / element_bytes(device.config, space));
    (space == Space::inp   ? device.config.inp_depth
     : space == Space::wgt ? device.config.wgt_depth
     : space == Space::acc ? device.config.acc_depth
                           : device.config.prm_depth) = elements;
  }
  TW_TRY(verify(device.config));
  return device;
}

}  // namespace tw::vdla
