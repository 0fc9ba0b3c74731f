// Predicts the cycles of a stream without running it: the engines, tokens, queues and the DRAM port
// of rtl/ as events. Values play no part.
#pragma once
#include <span>
#include <vector>

#include "backends/vdla/simulator.h"

namespace tw::vdla {

struct DramModel {
  uint32_t latency = 40;         // cycles from an address to the first beat or the response
  uint32_t bytes_per_cycle = 8;  // for reads and writes together
  bool operator==(const DramModel&) const = default;
};

struct Cycles {
  uint64_t total = 0;  // from start to finish
  uint64_t load_busy = 0, store_busy = 0;
  uint64_t compute_waits_load = 0, compute_waits_store = 0, load_waits = 0;
};

// The stream must run without a fault. Only the core itself fills load_waits and the busy counts.
Expected<Cycles> predict_cycles(const Config& config, const std::vector<Instruction>& stream,
                                const DramModel& dram);

}  // namespace tw::vdla
