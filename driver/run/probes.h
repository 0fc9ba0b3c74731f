// Probes: kernels of our own code generator that are timed to measure the machine.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/target.h"
#include "packager/loaded_library.h"

namespace tw {

using ProbeKernel = void (*)(void* const* buffers, void* workspace, const int64_t* symbols);

class Probes {
 public:
  // Compiles the kernels, given as text, for the target, and loads them.
  static Expected<Probes> load(const Target& target, const std::vector<std::string>& kernels);
  ProbeKernel find(const std::string& kernel) const;

 private:
  explicit Probes(LoadedLibrary library) : library_(std::move(library)) {}
  LoadedLibrary library_;
};

// Runs pass(thread) again and again on all threads at once. Returns the sum over threads of 1 /
// their fastest pass.
double passes_per_second(int threads, const std::function<void(int thread)>& pass);

struct alignas(64) Line {
  float values[16];
};

// Zeros on huge pages. Weights lie on large pages of the page cache; on small pages a probe would
// measure page walks.
class Pages {
 public:
  explicit Pages(int64_t lines);
  Line* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(Line* p) const { std::free(p); }
  };
  std::unique_ptr<Line, Free> data_;
};

}  // namespace tw
