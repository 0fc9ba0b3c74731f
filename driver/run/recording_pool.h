// A thread pool for tw_options.parallel that remembers which thread ran what part of each parallel
// loop, and when. It shares out equal parts as the runtime's own pool does.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "runtime/tilewright.h"

namespace tw {

// A thread's part of a parallel loop, in nanoseconds from the pool's start.
struct LoopPart {
  uint64_t begin = 0, end = 0;
  int32_t thread = 0;           // 0: the calling thread
  int32_t first = 0, last = 0;  // iterations; `last` is not included
  int32_t calls_before = 0;     // kernel calls of the run that were done when the loop began
};

class RecordingPool {
 public:
  explicit RecordingPool(int threads);
  RecordingPool(const RecordingPool&) = delete;
  ~RecordingPool();  // joins the threads

  const tw_parallel& parallel() const { return parallel_; }
  // Starts to keep parts. `profile` fills call_ns, which is 0 until a call is done.
  void record(std::span<const uint64_t> call_ns);
  std::vector<LoopPart> parts() const;  // sorted by begin
  uint64_t now() const;

 private:
  using Body = void (*)(void* arg, int32_t index);
  struct alignas(64) Lane {
    std::vector<LoopPart> parts;
  };
  void loop(Body body, void* arg, int32_t count);
  void run_part(int32_t thread);
  void work(int32_t thread);

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  tw_parallel parallel_;
  Body body_ = nullptr;  // body of the loop in this epoch
  void* arg_ = nullptr;
  int32_t count_ = 0, calls_before_ = 0;
  std::span<const uint64_t> call_ns_;
  bool recording_ = false;
  std::atomic<uint32_t> epoch_ = 0, left_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<Lane> lanes_;
  std::vector<std::thread> workers_;
};

}  // namespace tw
