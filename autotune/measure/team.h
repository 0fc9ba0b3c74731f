// The threads that run candidates: the caller and helpers, each pinned to a core of its own and
// made once. They spin between the parallel loops of successive runs, as the threads of an artifact
// do.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/tilewright.h"

namespace tw {

// Up to `count` of the cores that this process may use, the last one first
std::vector<int> last_cores(int count);

class Team {
 public:
  // Pins the caller to the first core. `cores` are cores that this process may use; with none,
  // nothing is pinned and the caller is alone.
  explicit Team(std::vector<int> cores);
  ~Team();
  Team(const Team&) = delete;

  int size() const { return 1 + static_cast<int>(helpers_.size()); }
  // The pool for generated code: at most `threads` of the team, at least one. Valid until the next
  // call.
  const tw_parallel* parallel(int threads);
  // begin() and end() enclose timed runs, in which no helper sleeps.
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
  alignas(64) std::atomic<uint32_t> epoch_{0};  // number of loops so far; helpers wait for the next
  std::atomic<uint32_t> awake_{0};
  bool stop_ = false, busy_ = false;  // stop_ is written before the epoch moves
  void (*fn_)(void* arg, int32_t index) = nullptr;
  void* arg_ = nullptr;
  int32_t count_ = 0, chunks_ = 1;
  std::vector<Helper> done_;  // the last epoch that each helper has finished
  std::vector<std::thread> helpers_;
};

}  // namespace tw
