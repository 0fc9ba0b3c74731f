// The threads that candidates run on: the caller and others, each pinned to a core of its own, made
// once. Between the parallel loops of runs that follow each other they spin, as an artifact's own
// do.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/tilewright.h"

namespace tw {

// Up to so many of the cores that this process may use, the last one first.
std::vector<int> last_cores(int count);

class Team {
 public:
  // Pins the caller to the first core. cores: of this process; none: nothing is pinned, and the
  // caller is alone.
  explicit Team(std::vector<int> cores);
  ~Team();
  Team(const Team&) = delete;

  int size() const { return 1 + static_cast<int>(helpers_.size()); }
  // For generated code: at most `threads` of the team, one at least. Valid until the next call.
  const tw_parallel* parallel(int threads);
  // Around runs that are timed: in between nobody sleeps.
  void begin();
  void end() { awake_.store(0, std::memory_order_release); }

 private:
  struct alignas(64) Helper {
    std::atomic<uint32_t> done{0};
  };
  static void parallel_for(void* team, void (*fn)(void* arg, int32_t index), void* arg,
                           int32_t count);
  void help(size_t index, int core);
  uint32_t await(uint32_t seen);
  void run_chunk(int32_t chunk) const;

  tw_parallel table_{};
  alignas(64) std::atomic<uint32_t> epoch_{0};  // of the loops so far; helpers wait for the next
  std::atomic<uint32_t> awake_{0};
  bool stop_ = false, busy_ = false;  // the first written before the epoch moves
  void (*fn_)(void* arg, int32_t index) = nullptr;
  void* arg_ = nullptr;
  int32_t count_ = 0, chunks_ = 1;
  std::vector<Helper> done_;  // by helper: the epoch that it has finished
  std::vector<std::thread> helpers_;
};

}  // namespace tw
