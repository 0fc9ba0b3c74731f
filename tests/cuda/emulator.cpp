#include "tests/cuda/emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace tw::test {
namespace {

constexpr size_t kStack = 256 << 10, kSharedBytes = 48 << 10, kMostThreads = 1024;
constexpr int kPoison = 0xFF;  // bytes of 0xFF are NaNs

struct Thread;
using Kernel = void (*)(Thread*, void**);
using Meaning = void (*)(void** operands);

struct Services {  // in the order of backends/cuda/form.h
  void (*barrier)(Thread*, int64_t place);
  void (*copy)(Thread*, void* to, const void* from, int64_t bytes, int64_t there);
  void (*commit)(Thread*);
  void (*wait)(Thread*, int64_t groups);
  void (*together)(Thread*, Meaning, int64_t threads, int64_t operands, void** mine,
                   const int64_t* bytes);
};

struct Copy {
  char* to;
  const char* from;
  size_t bytes;
  bool there;  // false: the copy writes zeros
};

enum class At : uint8_t { runs, barrier, together, ended };

class Block;

struct Thread {
  int64_t block[3], thread[3];
  void* shared;
  Services services;
  // Members that kernels do not know:
  Block* owner;
  ucontext_t here;
  At at;
  int64_t place;    // barrier where the thread waits
  Meaning meaning;  // the instruction that the warp does together
  int64_t width, count;
  void** mine;
  const int64_t* bytes;
  std::deque<std::vector<Copy>> groups;  // copies under way; the last group is open
};

class Block {
 public:
  Block(const EmulatedLaunch& launch, EmulatorCounts& counts, uint64_t number, char* stacks,
        char* shared)
      : launch_(launch),
        counts_(counts),
        threads_(size_t{launch.block[0]} * launch.block[1] * launch.block[2]),
        random_(launch.choices.seed * 0x9e3779b97f4a7c15ull + number) {
    std::memset(shared, kPoison, kSharedBytes);
    for (size_t t = 0; t < threads_.size(); ++t) {
      Thread& s = threads_[t];
      s.block[0] = static_cast<int64_t>(number % launch.grid[0]),
      s.block[1] = static_cast<int64_t>(number / launch.grid[0] % launch.grid[1]);
      s.block[2] = static_cast<int64_t>(number / launch.grid[0] / launch.grid[1]);
      s.thread[0] = static_cast<int64_t>(t % launch.block[0]),
      s.thread[1] = static_cast<int64_t>(t / launch.block[0] % launch.block[1]);
      s.thread[2] = static_cast<int64_t>(t / launch.block[0] / launch.block[1]);
      s.shared = shared;
      s.owner = this;
      start(s, stacks + t * kStack);
    }
  }

  std::string run() {
    std::vector<size_t> order(threads_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    while (problem_.empty()) {
      for (size_t i = order.size(); launch_.choices.seed && i > 1; --i)
        std::swap(order[i - 1], order[random() % i]);
      bool ran = false;
      for (const size_t t : order) {
        if (threads_[t].at != At::runs || !problem_.empty()) continue;
        swapcontext(&scheduler_, &threads_[t].here);
        ran = true;
      }
      if (!problem_.empty()) break;
      const bool worked = work_together();
      if (ran || worked) continue;
      if (std::ranges::all_of(threads_, [](const Thread& t) { return t.at == At::ended; })) break;
      meet();
    }
    return problem_;
  }

  void stop(Thread& t, At at) {
    t.at = at;
    swapcontext(&t.here, &scheduler_);
  }
  void fail(const std::string& why) {
    if (problem_.empty()) problem_ = why;
  }
  uint64_t random() {
    random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
    return random_ >> 33;
  }

  void copy(Thread& t, const Copy& c) {
    ++counts_.copies;
    const bool size = c.bytes == 4 || c.bytes == 8 || c.bytes == 16;
    if (!size || reinterpret_cast<uintptr_t>(c.to) % c.bytes ||
        (c.there && reinterpret_cast<uintptr_t>(c.from) % c.bytes))
      return fail("an asynchronous copy of " + std::to_string(c.bytes) +
                  " bytes that is not aligned to them");
    std::memset(c.to, kPoison, c.bytes);
    if (t.groups.empty()) t.groups.emplace_back();
    t.groups.back().push_back(c);
  }
  void commit(Thread& t) {
    if (t.groups.empty()) t.groups.emplace_back();
    t.groups.emplace_back();
    if (launch_.choices.seed && random() % 2) land(t, 1 + random() % t.groups.size());
  }
  // Completes the thread's committed groups of copies except the last `left`.
  void land(Thread& t, uint64_t left) {
    while (t.groups.size() > left + 1) {
      for (const Copy& c : t.groups.front()) {
        if (c.there) std::memcpy(c.to, c.from, c.bytes);
        else std::memset(c.to, 0, c.bytes);
      }
      t.groups.pop_front();
    }
  }

  const EmulatedLaunch& launch() const { return launch_; }
  EmulatorCounts& counts() { return counts_; }
  ucontext_t* scheduler() { return &scheduler_; }

 private:
  void start(Thread& t, char* stack);

  // Runs an instruction of a whole warp once all its threads wait for it. It serves one warp at a
  // time, so that this warp gets as far ahead of the others as it can.
  bool work_together() {
    std::vector<std::pair<size_t, size_t>> ready;
    for (size_t first = 0; first < threads_.size();) {
      const Thread& lead = threads_[first];
      const size_t width = lead.at == At::together ? static_cast<size_t>(lead.width) : 32,
                   end = std::min(first + width, threads_.size());
      const auto part = std::span(threads_).subspan(first, end - first);
      const auto same = [&](const Thread& t) {
        return t.at == At::together && t.meaning == lead.meaning;
      };
      if (lead.at == At::together && part.size() == width && std::ranges::all_of(part, same))
        ready.emplace_back(first, end);
      first = end;
    }
    if (ready.empty()) return false;
    const auto [first, end] = ready[launch_.choices.seed ? random() % ready.size() : 0];
    execute(first, end);
    return true;
  }

  void execute(size_t first, size_t end) {
    ++counts_.together;
    const Thread& lead = threads_[first];
    std::vector<std::vector<char>> whole;
    std::vector<void*> operands;
    for (int64_t p = 0; p < lead.count; ++p) {
      const auto each = static_cast<size_t>(lead.bytes[p]);
      whole.emplace_back(each * (end - first));
      for (size_t t = first; t < end; ++t)
        std::memcpy(whole.back().data() + (t - first) * each, threads_[t].mine[p], each);
    }
    for (auto& bytes : whole) operands.push_back(bytes.data());
    lead.meaning(operands.data());
    for (size_t t = first; t < end; ++t) {
      for (int64_t p = 0; p < lead.count; ++p) {
        const auto each = static_cast<size_t>(lead.bytes[p]);
        std::memcpy(threads_[t].mine[p], whole[static_cast<size_t>(p)].data() + (t - first) * each,
                    each);
      }
      threads_[t].at = At::runs;
    }
  }

  void meet() {
    const Thread* at_barrier = nullptr;
    for (const Thread& t : threads_) {
      if (t.at == At::ended) return fail("threads have ended that others wait for");
      if (t.at == At::together)
        return fail(
            "the threads of a warp are not together at an instruction that they do together");
      if (at_barrier && at_barrier->place != t.place)
        return fail("threads wait at different barriers");
      at_barrier = &t;
    }
    for (Thread& t : threads_) t.at = At::runs;
  }

  const EmulatedLaunch& launch_;
  EmulatorCounts& counts_;
  std::vector<Thread> threads_;
  ucontext_t scheduler_{};
  uint64_t random_;
  std::string problem_;
};

void enter(uint32_t low, uint32_t high) {
  auto* t = reinterpret_cast<Thread*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high)
                                                                        << 32);
  Block& block = *t->owner;
  reinterpret_cast<Kernel>(block.launch().kernel)(t, block.launch().parameters);
  for (const auto& group : t->groups)
    if (!group.empty()) block.fail("asynchronous copies that nobody waits for");
  t->at = At::ended;
}

void Block::start(Thread& t, char* stack) {
  t.at = At::runs;
  t.services = {[](Thread* s, int64_t place) {
                  if (s->owner->launch().choices.without_barrier == place) return;
                  ++s->owner->counts().barriers, s->place = place, s->owner->stop(*s, At::barrier);
                },
                [](Thread* s, void* to, const void* from, int64_t bytes, int64_t there) {
                  s->owner->copy(*s, {static_cast<char*>(to), static_cast<const char*>(from),
                                      static_cast<size_t>(bytes), there != 0});
                },
                [](Thread* s) { s->owner->commit(*s); },
                [](Thread* s, int64_t groups) {
                  s->owner->land(
                      *s, static_cast<uint64_t>(groups + s->owner->launch().choices.wait_fewer));
                },
                [](Thread* s, Meaning meaning, int64_t threads, int64_t operands, void** mine,
                   const int64_t* bytes) {
                  s->meaning = meaning, s->width = threads, s->count = operands, s->mine = mine,
                  s->bytes = bytes;
                  s->owner->stop(*s, At::together);
                }};
  getcontext(&t.here);
  t.here.uc_stack.ss_sp = stack;
  t.here.uc_stack.ss_size = kStack;
  t.here.uc_link = &scheduler_;
  const auto at = reinterpret_cast<uintptr_t>(&t);
  makecontext(&t.here, reinterpret_cast<void (*)()>(enter), 2, static_cast<uint32_t>(at),
              static_cast<uint32_t>(at >> 32));
}

}  // namespace

std::string emulate(const EmulatedLaunch& launch, EmulatorCounts& counts) {
  static std::unique_ptr<char[]> stacks(new char[kMostThreads * kStack]);
  alignas(64) static char shared[kSharedBytes];
  if (size_t{launch.block[0]} * launch.block[1] * launch.block[2] > kMostThreads)
    return "too many threads";
  for (uint64_t b = 0; b < uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]; ++b)
    if (std::string problem = Block(launch, counts, b, stacks.get(), shared).run();
        !problem.empty())
      return problem;
  return "";
}

}  // namespace tw::test
