// For tests: loads the fake libcuda (fake_libcuda.cpp) into this process, where a model's runtime
// finds it too, and launches kernels through its functions.
#pragma once
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/target.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/fake_counts.h"

namespace tw::test {

// cuda_target takes a target of configs/; emulated has the feature for code that the fake runs.
Target cuda_target(const std::string& name = "nvidia-sm80");
Target emulated();

class FakeCuda {
 public:
  static FakeCuda& get();  // loads it once
  FakeCounts counts() const;
  EmulatorCounts emulated() const;
  void choose(const EmulatorChoices& choices) const;  // for launches from now on
  // Lets the n-th call from now on fail, of those that launch, make or fill a graph; 0: none.
  // Returns how many calls the last countdown had left.
  int fail_call(int n) const;
  std::string breaches() const;  // rules of the API broken since the last call, in words
  // Both return "" or an error. `buffers` has one for each parameter buffer of the kernel. The
  // launch reads and writes them in place; bytes beside them are checked.
  std::string load(const std::string& object);
  std::string run(const Kernel& kernel, const std::vector<DeviceLaunch>& launches,
                  std::vector<std::vector<std::byte>>& buffers,
                  const std::vector<int64_t>& symbols);

  template <class F>
  F* find(const char* name) const;  // a function of the API

 private:
  FakeCuda();
  void* library_ = nullptr;
  void* module_ = nullptr;
};

template <class F>
F* FakeCuda::find(const char* name) const {
  void* pointer = nullptr;
  auto* address = reinterpret_cast<int32_t (*)(const char*, void**, int32_t, uint64_t)>(
      dlsym(library_, "cuGetProcAddress"));
  REQUIRE((address != nullptr));
  REQUIRE(address(name, &pointer, 12000, 0) == 0);
  return reinterpret_cast<F*>(pointer);
}

}  // namespace tw::test
