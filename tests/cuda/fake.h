// For tests: the fake libcuda (fake_libcuda.cpp) in this process, where a model's runtime finds it too, and launches through its functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/program.h"
#include "tests/cuda/emulator.h"

namespace tw::test {

struct FakeCounts {
  int32_t contexts = 0, current = 0, allocations = 0, launches = 0, barriers = 0;
};

class FakeCuda {
 public:
  static FakeCuda& get();       // loads it once
  FakeCounts counts() const;
  EmulatorCounts emulated() const;
  void choose(const EmulatorChoices& choices) const;   // for the launches to come
  // "" or what went wrong. `buffers`: one a parameter buffer of the kernel, read and written in place; bytes beside them are checked.
  std::string load(const std::string& object);
  std::string run(const Kernel& kernel, const std::vector<DeviceLaunch>& launches, std::vector<std::vector<std::byte>>& buffers, const std::vector<int64_t>& symbols);

 private:
  FakeCuda();
  template <class F>
  F* find(const char* name) const;
  void* library_ = nullptr;
  void* module_ = nullptr;
};

}  // namespace tw::test
