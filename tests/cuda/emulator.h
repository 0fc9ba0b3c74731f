// Launches of kernels in the emulated form (backends/cuda/form.h) on the processor: a thread of the
// GPU is a fiber, blocks run one after the other. What the hardware leaves open is chosen to hurt:
//  * memory of a block begins as NaNs, and the target of an asynchronous copy is NaNs until it
//  lands;
//  * copies land as late as their thread's waits allow (seed 0), or at moments that the seed
//  chooses, from what lies at the source then;
//  * threads run from one meeting to the next in order, the first ones first (seed 0), or in orders
//  that the seed chooses.
// What is no legal use is a problem in words: a barrier that not all threads reach, or reach at
// different places in the code, threads of a warp apart at an instruction that they do together,
// copies that nobody waits for, a copy of a size or alignment that there is none of.
#pragma once
#include <cstdint>
#include <string>

namespace tw::test {

struct EmulatorChoices {
  uint64_t seed = 0;
  // Bugs to plant: as if the code had no barrier at that place (numbered as they were written), or
  // waited for so many groups of copies fewer.
  int64_t without_barrier = -1, wait_fewer = 0;
};

struct EmulatedLaunch {
  void* kernel = nullptr;
  void** parameters = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  EmulatorChoices choices{};
};

struct EmulatorCounts {
  // By thread; elementary copies; instructions of whole warps
  int32_t barriers = 0, copies = 0, together = 0;
};

std::string emulate(const EmulatedLaunch& launch, EmulatorCounts& counts);  // "" or the problem

}  // namespace tw::test
