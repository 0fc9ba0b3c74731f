// Jobs and results of measurements as plain values, and the transport to whoever measures: a
// process on this machine, a simulator, or a farm of boards.
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

// Tells if a search is to end at once, because a user asks for it or its time is over. Callable
// from any thread; empty: never.
using StopAsked = std::function<bool()>;

// Sampling ends at a limit. It ends earlier once `least_time` is sampled and the 95 % interval of
// the median is narrower than `relative_interval` of the median.
struct MeasureLimits {
  double timeout = 5;        // seconds that the candidate may take in all
  double least_time = 0.02;  // seconds to sample at least
  double relative_interval = 0.02;
  int most_samples = 50;  // 0: the candidate runs once, for its outputs
  // Seconds of the best candidate so far. A candidate whose runs are all clearly slower ends early;
  // 0: no candidate yet
  double best = 0;
};

struct BufferSpec {
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  bool input = true, constant = false;  // neither: an output
  // Chooses the contents of inputs and constants: equal for a parameter of the lowered kernel in
  // all its schedules
  uint32_t contents = 0;
  // Constants that the library makes from others: its function, void(void* const* buffers, void*
  // workspace, const int64_t* symbols) with the other and the new one as buffers. The contents are
  // then those of the other. Functions of one name make the same.
  std::string pack = {};
  uint64_t source_bytes = 0;
  DType source_dtype = DType::f32;
  bool operator==(const BufferSpec&) const = default;
};

struct MeasureJob {
  std::string library;  // bytes of a shared library
  // void(void* const* buffers, void* workspace, const int64_t* symbols, const tw_parallel*)
  std::string symbol;
  std::vector<BufferSpec> buffers;  // the function's parameters in order
  uint64_t workspace_bytes = 0;
  std::vector<int64_t> symbols;
  uint64_t seed = 0;  // seed of the contents of inputs and constants
  MeasureLimits limits;
  std::vector<std::byte> expected;  // bytes of all outputs in order; empty: not compared
  double tolerance = 1e-4;  // largest error of floats, relative to the range of the expected output
  bool return_outputs = false;  // returns the outputs of the first run
  // True: the symbol is a tw_query_fn. The library runs the kernel on a device, as its only call
  // other than copies.
  bool artifact = false;
  // Threads of the pool that the function gets behind the symbols, as a tw_parallel
  int threads = 1;
  // Bytes of constants that pass through the caches between two runs. 0, or more than the machine
  // counts as cold: as many as the machine counts as cold
  uint64_t weights_between = 0;
};

struct MeasureResult {
  Status status = Status::ok;
  std::vector<double> seconds;  // seconds of one run, by sample
  std::string error;            // one line
  std::string device;           // fingerprint of the machine
  // Something disturbed some samples, even when they were taken again
  bool contended = false;
  std::vector<std::byte> outputs = {};  // present when asked for
  std::string code = {};                // hash of the object code, set by the builder
  bool lost = false;  // the measuring side is gone, which says nothing of the candidate
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Returns a result for each job, in order. A failed job has its failure in its result.
  virtual std::vector<MeasureResult> run(std::span<const MeasureJob> jobs) = 0;
  virtual std::string device() const { return ""; }  // fingerprint of the measuring machine
  virtual bool gone() const { return false; }  // nobody measures any more, and results are lost
};

}  // namespace tw
