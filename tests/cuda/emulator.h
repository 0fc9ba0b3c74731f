// Launches of kernels in the emulated form (backends/cuda/form.h) on the processor. A thread of the
// GPU is a fiber, and blocks run one after the other. Where the hardware has a choice, the emulator
// makes the one that hurts:
//   * memory of a block begins as NaNs, and so does the target of an asynchronous copy until it
//     lands;
//   * copies land as late as their thread's waits allow (seed 0), or at moments that the seed
//     chooses, with the bytes that are at the source then;
//   * threads run from one meeting point to the next, the first ones first (seed 0) or in orders
//     that the seed chooses.
// Illegal use is a problem in words: a barrier that some threads never reach, threads at different
// barriers, threads of a warp apart at an instruction of the whole warp, copies that no thread
// waits for, a copy of a size or alignment that the hardware lacks.
#pragma once
#include <cstdint>
#include <string>

namespace tw::test {

struct EmulatorChoices {
  uint64_t seed = 0;
  // Bugs to plant: leave out the barrier of this number in the code, or let each wait accept this
  // many more unfinished groups of copies.
  int64_t without_barrier = -1, wait_fewer = 0;
};

struct EmulatedLaunch {
  void* kernel = nullptr;
  void** parameters = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  EmulatorChoices choices{};
};

struct EmulatorCounts {
  // barriers: one a thread; copies: elementary ones; together: instructions of whole warps
  int32_t barriers = 0, copies = 0, together = 0;
};

std::string emulate(const EmulatedLaunch& launch, EmulatorCounts& counts);  // "" or the problem

}  // namespace tw::test
