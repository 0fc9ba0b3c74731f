// Finds races by vector clocks over SRAM elements and DRAM beats: tokens must order conflicting
// accesses for any latencies.
#pragma once
#include <deque>
#include <set>
#include <vector>

#include "backends/vdla/isa.h"

namespace tw::vdla {

// The four token counters, named by who pushes and who pops
enum class Link : uint8_t { load_to_compute, compute_to_load, compute_to_store, store_to_compute };
constexpr int kLinks = 4;
constexpr uint32_t kMostTokens = 255;
const char* link_name(Link link);
std::vector<Link> popped(const Instruction& instruction);
std::vector<Link> pushed(const Instruction& instruction);

struct Race {
  uint32_t first = 0, second = 0;  // instructions; either may execute first, depending on latencies
  Space space = Space::dram;
  uint64_t place = 0;  // element, or byte offset in DRAM
  bool operator<(const Race& o) const {
    return std::pair(first, second) < std::pair(o.first, o.second);
  }
};

// Instructions may come in any order that the tokens allow; the result is the same.
class RaceChecker {
 public:
  RaceChecker(const Config& config, uint64_t dram_bytes);
  // A store must not change instructions that are still to be fetched.
  void set_stream(uint64_t address, uint32_t count) { stream_ = address, count_ = count; }
  void begin(const Instruction& instruction, uint32_t index);
  // An access by the instruction begun last; DRAM in bytes
  void access(Space space, uint64_t first, uint64_t count, bool write);
  void end();
  // One race for each pair of instructions, at most kMostRaces
  const std::set<Race>& races() const { return races_; }
  // Pushes that may find their counter full
  const std::set<uint32_t>& overflows() const { return overflows_; }
  static constexpr size_t kMostRaces = 64;

 private:
  using Clock = std::array<uint32_t, kEngines>;  // instructions known to be complete, by engine
  struct Touch {
    uint32_t order = 0, index = 0;
  };  // order 0: no access
  struct Slot {
    std::array<Touch, kEngines> write, read;
  };
  void meet(const std::array<Touch, kEngines>& touches, Space space, uint64_t place);

  uint64_t beat_, stream_ = 0;
  uint32_t count_ = 0;
  std::array<std::vector<Slot>, kSpaces> slots_;
  std::array<Clock, kEngines> clocks_{};
  std::array<std::deque<Clock>, kLinks> tokens_;
  std::array<uint64_t, kLinks> pushes_{};
  // Number of tokens popped up to each of the consumer's instructions
  std::array<std::vector<uint32_t>, kLinks> pops_;
  const Instruction* running_ = nullptr;
  uint32_t index_ = 0;
  std::set<Race> races_;
  std::set<uint32_t> overflows_;
};

}  // namespace tw::vdla
