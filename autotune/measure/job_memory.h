// The parameters of a job in memory. Activations stay where they are. Constants have as many copies
// as it takes for each to be cold when its turn comes. Inputs and constants are read-only, and an
// inaccessible page follows every region.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "autotune/measure.h"
#include "support/diag.h"

namespace tw {

// Zeroed pages, only of the usual size, so that every run of the tuner sees the same
class Mapping {
 public:
  Mapping() = default;
  static Expected<Mapping> create(uint64_t bytes);
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(other.size_) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* data() const { return base_; }
  void make_read_only();

 private:
  Mapping(std::byte* base, uint64_t size) : base_(base), size_(size) {}
  std::byte* base_ = nullptr;
  uint64_t size_ = 0;  // bytes, with the inaccessible page behind
};

// Makes a constant from another one.
using PackFunction = void (*)(void* const* buffers, void* workspace, const int64_t* symbols);

class JobMemory {
 public:
  // Creates and fills the memory from the job's seed. `packs` has the function of each buffer that
  // the library makes. Errors: more than kMostBytes, no memory.
  static Expected<JobMemory> create(const MeasureJob& job, uint64_t cold_bytes,
                                    const std::vector<PackFunction>& packs);
  bool serves(const MeasureJob& job) const;  // true for the same parameters with the same contents

  // Sets all bits of the outputs and the workspace, to mark them as not written. Makes room for the
  // workspace.
  Error prepare(uint64_t workspace_bytes);
  // The pointers for run number `run`; valid until the next call
  void* const* parameters(uint64_t run);
  void* workspace() const { return workspace_.data(); }
  std::span<const std::byte> output(size_t buffer) const;
  uint64_t copies() const { return copies_; }

  static constexpr uint64_t kMostBytes = uint64_t{8} << 30;

 private:
  Error map(uint64_t cold_bytes, const std::vector<PackFunction>& packs);
  void fill_constants(const std::vector<PackFunction>& packs);

  std::vector<BufferSpec> buffers_;
  uint64_t seed_ = 0;
  uint64_t weights_between_ = 0;
  std::vector<Mapping> mappings_;  // by buffer; constants have none of their own
  std::vector<void*> pointers_;    // one for each buffer
  Mapping constants_, workspace_;
  std::vector<uint64_t> offsets_;  // offset of each constant in a copy, by buffer
  uint64_t copy_bytes_ = 0, copies_ = 1, workspace_bytes_ = 0;
};

}  // namespace tw
