// The effect of one instruction on SRAM and DRAM. Order, tokens and time are up to the callers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "backends/vdla/isa.h"
#include "backends/vdla/races.h"
#include "backends/vdla/requant.h"

namespace tw::vdla {

class Machine {
 public:
  Machine(const Config& config, std::span<uint8_t> dram, const std::array<uint64_t, kBases>& bases);
  void watch(RaceChecker* checker) { checker_ = checker; }
  // The instruction must have passed check_fields and check_range. False: an address lies outside
  // DRAM, and the effect is partial.
  bool execute(const Instruction& instruction);
  uint64_t gemm_steps = 0, alu_steps = 0, read_bytes = 0, written_bytes = 0;

 private:
  bool run(const Load& i);
  bool run(const Store& i);
  bool run(const Gemm& i);
  bool run(const Alu& i);
  void load_element(Space scope, uint64_t element, const uint8_t* from);
  void store_element(const Store& i, uint64_t element, uint8_t* to);
  uint8_t* dram_at(uint64_t address, uint64_t bytes);
  void touch(Space space, uint64_t first, uint64_t count, bool write) {
    if (checker_) checker_->access(space, first, count, write);
  }

  Config config_;
  std::span<uint8_t> dram_;
  std::array<uint64_t, kBases> bases_;
  std::vector<int8_t> inp_, wgt_;
  std::vector<int32_t> acc_;
  std::vector<RequantParams> prm_;
  RaceChecker* checker_ = nullptr;
};

// Number of elements moved or computed, which bounds the work of an instruction
uint64_t steps_of(const Instruction& instruction);

}  // namespace tw::vdla
