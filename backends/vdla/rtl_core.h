// The SystemVerilog core as a library made by Verilator, opened at run time: the same launch and outcome as simulate().
#pragma once
#include <memory>
#include <string>

#include "backends/vdla/simulator.h"

namespace tw::vdla {

struct DramModel {
  uint32_t latency = 40;           // cycles
  uint32_t bytes_per_cycle = 8;    // reads and writes together
  bool operator==(const DramModel&) const = default;
};

struct RtlOptions {
  DramModel dram = {};
  uint32_t jitter = 0;             // chance in 256 that a handshake is held back
  uint32_t seed = 1;
  uint32_t watchdog = 20000;       // cycles without progress that are a deadlock
  uint64_t most_cycles = uint64_t{1} << 32;
};

struct Cycles {
  uint64_t total = 0;              // from start to finish
  uint64_t load_busy = 0, store_busy = 0;
  uint64_t compute_waits_load = 0, compute_waits_store = 0, load_waits = 0;
};

class RtlCore {
 public:
  static Expected<std::shared_ptr<RtlCore>> open(const std::string& library);
  ~RtlCore();
  RtlCore(const RtlCore&) = delete;
  const Config& config() const { return config_; }
  // The outcome has no races: hardware does not see them.
  Expected<Outcome> run(std::span<uint8_t> dram, const Launch& launch, const RtlOptions& options = {}, Cycles* cycles = nullptr) const;

 private:
  RtlCore() = default;
  void* library_ = nullptr;
  void* run_ = nullptr;
  Config config_;
};

}  // namespace tw::vdla
