// What is timed and what comes back, as plain values, and the way to whoever times it: a process
// here, a simulator, a farm of boards.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autotune/record.h"
#include "ir/dtype.h"

namespace tw {

// Whether a search is to end now, because somebody asks for it or its time is over. From any
// thread; empty: never.
using StopAsked = std::function<bool()>;

// Sampling ends when the 95 % interval of the median is narrower than `relative_interval` of it and
// `least_time` was measured, or at a limit.
struct MeasureLimits {
  double timeout = 5;        // seconds that the candidate may take in all
  double least_time = 0.02;  // seconds to sample at least
  double relative_interval = 0.02;
  int most_samples = 50;  // 0: the candidate runs once, for its outputs
  // Seconds of the best candidate so far: one whose runs are all clearly slower ends early; 0: none
  double best = 0;
};

struct BufferSpec {
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  bool input = true, constant = false;  // neither: an output
};

struct MeasureJob {
  std::string library;  // bytes of a shared library
  // void(void* const* buffers, void* workspace, const int64_t* symbols, const tw_parallel*)
  std::string symbol;
  std::vector<BufferSpec> buffers;  // the function's parameters in order
  uint64_t workspace_bytes = 0;
  std::vector<int64_t> symbols;
  uint64_t seed = 0;  // of the contents of inputs and constants
  MeasureLimits limits;
  std::vector<std::byte> expected;  // the outputs' bytes, one after the other; empty: not compared
  double tolerance = 1e-4;          // of floats, relative to the range of the expected output
  bool return_outputs = false;      // of the first run
  // The symbol is a tw_query_fn: the library runs the kernel on a device, as its only call that is
  // no copy
  bool artifact = false;
  // Of the pool that the function is handed: a tw_parallel, behind the symbols
  int threads = 1;
  // Bytes of constants that pass through the caches between two runs; 0, and what is more: as many
  // as the machine takes for cold
  uint64_t weights_between = 0;
};

struct MeasureResult {
  Status status = Status::ok;
  std::vector<double> seconds;  // of a run, by sample
  std::string error;            // one line
  std::string device;           // fingerprint of the machine
  // Something disturbed some samples, also when they were taken again
  bool contended = false;
  std::vector<std::byte> outputs = {};  // where asked for
  std::string code = {};                // hash of the object code, by who built it
  bool lost = false;  // who was to measure is gone: it says nothing of the candidate
};

class Transport {
 public:
  virtual ~Transport() = default;
  // A result a job, in order. A job that fails says so in its own result.
  virtual std::vector<MeasureResult> run(std::span<const MeasureJob> jobs) = 0;
  virtual std::string device() const { return ""; }  // fingerprint of who measures
  virtual bool gone() const { return false; }        // whoever measured; results are lost
};

}  // namespace tw
