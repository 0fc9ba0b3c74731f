// Vector clocks over SRAM elements and DRAM beats: conflicting accesses must be ordered by tokens,
// whatever the latencies are.
#pragma once
#include <deque>
#include <set>
#include <vector>

#include "backends/vdla/isa.h"

namespace tw::vdla {

// The four token counters, by who pushes and who pops.
enum class Link : uint8_t { load_to_compute, compute_to_load, compute_to_store, store_to_compute };
constexpr int kLinks = 4;
constexpr uint32_t kMostTokens = 255;
const char* link_name(Link link);
std::vector<Link> popped(const Instruction& instruction);
std::vector<Link> pushed(const Instruction& instruction);

struct Race {
  uint32_t first = 0, second = 0;  // instructions; which executes first depends on latencies
  Space space = Space::dram;
  uint64_t place = 0;  // element, or byte offset in DRAM
  bool operator<(const Race& o) const {
    return std::pair(first, second) < std::pair(o.first, o.second);
  }
};

// Instructions come in any order that the tokens allow; the order found here does not depend on it.
class RaceChecker {
 public:
  RaceChecker(const Config& config, uint64_t dram_bytes);
  // a store may not change what is yet to be fetched
  void set_stream(uint64_t address, uint32_t count) { stream_ = address, count_ = count; }
  void begin(const Instruction& instruction, uint32_t index);
  // By the instruction begun; dram: bytes
  void access(Space space, uint64_t first, uint64_t count, bool write);
  void end();
  // One a pair of instructions, at most kMostRaces
  const std::set<Race>& races() const { return races_; }
  // Pushes that may find their counter full
  const std::set<uint32_t>& overflows() const { return overflows_; }
  static constexpr size_t kMostRaces = 64;

 private:
  using Clock = std::array<uint32_t, kEngines>;  // instructions known to be complete
  struct Touch {
    uint32_t order = 0, index = 0;
  };  // order 0: none
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
  // [consumer's instruction] tokens popped up to it
  std::array<std::vector<uint32_t>, kLinks> pops_;
  const Instruction* running_ = nullptr;
  uint32_t index_ = 0;
  std::set<Race> races_;
  std::set<uint32_t> overflows_;
};

}  // namespace tw::vdla
