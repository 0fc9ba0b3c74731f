#include "autotune/measure/team.h"

#include <sched.h>

#include <algorithm>

namespace tw {
namespace {

constexpr int kSpins = 20000;  // turns outside of timed runs before a helper sleeps

void pin(int core) {
  if (core < 0 || core >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

}  // namespace

std::vector<int> last_cores(int count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = CPU_SETSIZE; core-- > 0 && static_cast<int>(cores.size()) < count;)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

Team::Team(std::vector<int> cores) : done_(cores.empty() ? 0 : cores.size() - 1) {
  for (size_t i = 1; i < cores.size(); ++i)
    helpers_.emplace_back([this, i, core = cores[i]] { help(i, core); });
  if (!cores.empty()) pin(cores.front());
}

Team::~Team() {
  stop_ = true;
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

const tw_parallel* Team::parallel(int threads) {
  table_ = {parallel_for, this, std::clamp(threads, 1, size())};
  return &table_;
}

void Team::begin() {
  awake_.store(1, std::memory_order_release);
  if (helpers_.empty()) return;
  parallel(size());
  parallel_for(this, [](void*, int32_t) {}, nullptr, size());  // wakes sleeping helpers
}

void Team::run_chunk(int32_t chunk) const {
  const int32_t each = count_ / chunks_, rest = count_ % chunks_;
  const int32_t from = chunk * each + std::min(chunk, rest),
                to = from + each + (chunk < rest ? 1 : 0);
  for (int32_t i = from; i < to; ++i) fn_(arg_, i);
}

void Team::parallel_for(void* self, void (*fn)(void* arg, int32_t index), void* arg,
                        int32_t count) {
  Team& team = *static_cast<Team*>(self);
  const int32_t chunks = std::min(count, team.table_.threads);
  if (chunks <= 1 || team.busy_) {
    for (int32_t i = 0; i < count; ++i) fn(arg, i);
    return;
  }
  team.busy_ = true;
  team.fn_ = fn, team.arg_ = arg, team.count_ = count, team.chunks_ = chunks;
  const uint32_t epoch = team.epoch_.fetch_add(1, std::memory_order_acq_rel) + 1;
  team.epoch_.notify_all();
  team.run_chunk(0);
  // Waits for all helpers: one without a chunk may still be reading the members written above.
  for (Helper& helper : team.done_)
    while (helper.done.load(std::memory_order_acquire) != epoch) relax();
  team.busy_ = false;
}

uint32_t Team::await(uint32_t seen) {
  for (int spin = 0; spin < kSpins || awake_.load(std::memory_order_relaxed) != 0; ++spin) {
    if (const uint32_t now = epoch_.load(std::memory_order_acquire); now != seen) return now;
    relax();
  }
  epoch_.wait(seen, std::memory_order_acquire);
  return epoch_.load(std::memory_order_acquire);
}

void Team::help(size_t index, int core) {
  pin(core);
  for (uint32_t seen = 0;;) {
    seen = await(seen);
    if (stop_) return;
    if (static_cast<int32_t>(index) < chunks_) run_chunk(static_cast<int32_t>(index));
    done_[index - 1].done.store(seen, std::memory_order_release);
  }
}

}  // namespace tw
