// The instruction-set simulator: fetch, three bounded queues and four token counters, executed in
// one fixed order. Tokens decide the result of a race-free stream, so any order gives the same
// result. The race checker tells if a stream is race-free.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/vdla/isa.h"
#include "backends/vdla/races.h"

namespace tw::vdla {

struct Launch {
  // Address of the stream in DRAM, a multiple of kInstructionBytes
  uint64_t instructions = 0;
  uint32_t count = 0;
  std::array<uint64_t, kBases> bases{};  // multiples of bus_bytes
};

struct Counters {
  uint64_t instructions = 0;                   // executed ones, including finish
  uint64_t gemm = 0, alu = 0;                  // steps of the array and of the vector unit
  uint64_t read_bytes = 0, written_bytes = 0;  // without fetching
  bool operator==(const Counters&) const = default;
};

struct Outcome {
  Fault fault = Fault::none;
  // The instruction at fault; for a deadlock the oldest waiting one
  uint32_t pc = 0;
  uint32_t marker = 0;       // marker of finish
  std::optional<Diag> diag;  // set for every fault
  Counters counters;         // complete only without a fault
  std::vector<Race> races;   // with check_races
  // With check_races: instructions whose push may find its counter full
  std::vector<uint32_t> overflows;
  bool ok() const { return fault == Fault::none && races.empty() && overflows.empty(); }
};

struct SimulatorOptions {
  bool check_races = true;
  uint64_t most_steps = uint64_t{1} << 32;  // Fault::limit beyond
};

Error verify(const Launch& launch, const Config& config);

// Errors: a configuration or launch that cannot start on any core. Anything wrong in the stream
// itself becomes a fault.
Expected<Outcome> simulate(const Config& config, std::span<uint8_t> dram, const Launch& launch,
                           const SimulatorOptions& options = {});

// Fault and races as texts
std::vector<Diag> describe(const Outcome& outcome, std::span<const uint8_t> dram,
                           const Launch& launch);

}  // namespace tw::vdla
