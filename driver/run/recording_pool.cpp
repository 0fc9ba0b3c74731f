#include "driver/run/recording_pool.h"

#include <algorithm>

namespace tw {

RecordingPool::RecordingPool(int threads)
    : parallel_{[](void* pool, Body body, void* arg, int32_t count) {
                  static_cast<RecordingPool*>(pool)->loop(body, arg, count);
                },
                this, threads},
      lanes_(static_cast<size_t>(threads)) {
  for (int32_t thread = 1; thread < threads; ++thread)
    workers_.emplace_back([this, thread] { work(thread); });
}

RecordingPool::~RecordingPool() {
  stop_ = true;
  ++epoch_;
  for (std::thread& worker : workers_) worker.join();
}

uint64_t RecordingPool::now() const {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now() - start_)
                                   .count());
}

void RecordingPool::record(std::span<const uint64_t> call_ns) {
  call_ns_ = call_ns, recording_ = true;
}

void RecordingPool::loop(Body body, void* arg, int32_t count) {
  body_ = body, arg_ = arg, count_ = count;
  calls_before_ = static_cast<int32_t>(
      std::ranges::count_if(call_ns_, [](uint64_t ns) { return ns > 0; }));
  left_ = static_cast<uint32_t>(workers_.size());
  ++epoch_;
  run_part(0);
  while (left_ > 0) std::this_thread::yield();
}

void RecordingPool::run_part(int32_t thread) {
  const auto bound = [&](int64_t t) {
    return static_cast<int32_t>(int64_t{count_} * t / parallel_.threads);
  };
  const int32_t first = bound(thread), last = bound(thread + 1);
  if (first == last) return;
  LoopPart part{now(), 0, thread, first, last, calls_before_};
  for (int32_t i = first; i < last; ++i) body_(arg_, i);
  part.end = now();
  if (recording_) lanes_[static_cast<size_t>(thread)].parts.push_back(part);
}

void RecordingPool::work(int32_t thread) {
  for (uint32_t seen = 0;;) {
    while (epoch_ == seen) std::this_thread::yield();
    if (stop_) return;
    ++seen;
    run_part(thread);
    --left_;
  }
}

std::vector<LoopPart> RecordingPool::parts() const {
  std::vector<LoopPart> all;
  for (const Lane& lane : lanes_) all.insert(all.end(), lane.parts.begin(), lane.parts.end());
  std::ranges::stable_sort(all, {}, &LoopPart::begin);
  return all;
}

}  // namespace tw
