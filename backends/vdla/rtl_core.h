// The SystemVerilog core as a library made by Verilator, opened at run time. It takes the launches
// of simulate() and gives the same outcomes.
#pragma once
#include <memory>
#include <string>

#include "backends/vdla/timing.h"

struct tw_vdla_device;

namespace tw::vdla {

struct RtlOptions {
  DramModel dram = {};
  uint32_t jitter = 0;  // chance in 256 that a handshake is delayed
  uint32_t seed = 1;
  uint32_t watchdog = 20000;  // cycles without progress that count as a deadlock
  uint64_t most_cycles = uint64_t{1} << 32;
};

class RtlCore {
 public:
  static Expected<std::shared_ptr<RtlCore>> open(const std::string& library);
  ~RtlCore();
  RtlCore(const RtlCore&) = delete;
  const Config& config() const { return config_; }
  // The outcome has no races, because hardware cannot see them.
  Expected<Outcome> run(std::span<uint8_t> dram, const Launch& launch,
                        const RtlOptions& options = {}, Cycles* cycles = nullptr) const;

 private:
  RtlCore() = default;
  void* library_ = nullptr;
  const ::tw_vdla_device* table_ = nullptr;
  Config config_;
};

}  // namespace tw::vdla
