// The roofline: peak rates of the machine, measured with kernels of our own code generator, and the
// least time that they allow a kernel.
#pragma once
#include <string>
#include <vector>

#include "ir/core_rates.h"
#include "ir/target.h"
#include "support/json.h"

namespace tw {

struct MemoryLevel {
  std::string name;   // "L2", "L3", "DRAM"
  int64_t bytes = 0;  // size for all threads together; INT64_MAX for the last
  double gbs = 0;     // reading by all threads together, 1e9 bytes a second
};
struct Peaks {
  // f32 multiply-adds (a product and a sum where the target has no such instruction), all threads
  double gflops = 0;
  // Loads that the first-level cache serves, 1e9 bytes a second, all threads
  double l1_gbs = 0;
  std::vector<MemoryLevel> levels;  // levels behind the first-level cache, nearest first
  CoreRates rates = {};             // the target's rates

  // Peak of products of this type: measured for f32, and for others by the target's rates
  double gflops_of(DType operand) const;
};

// Runs probes for about 0.1 s on `threads` threads. The target must be one that this machine can
// run.
Expected<Peaks> measure_peaks(const Target& target, int threads);

// The larger of both for each rate: a machine that is busy shows less than it has. Levels are those
// of the first.
Peaks larger_of(Peaks first, const Peaks& second);

// The least time of a kernel that does `flops` operations on numbers of `operand` and loads
// `loaded_bytes` (ir/kernel/loads.h). Its `tensor_bytes` of activations lie in the first level that
// holds them. Its `weight_bytes` of weights come from the first level that holds `resident_bytes`,
// all bytes that a run touches.
struct Roof {
  double seconds = 0;
  std::string bound;  // "fma", "L1", or the level whose bandwidth counts most
};
Roof roof_of(const Peaks& peaks, DType operand, double flops, double loaded_bytes,
             double weight_bytes, double tensor_bytes, double resident_bytes);

Json to_json(const Peaks& peaks);
// "118.0 GFLOP/s (bf16 236, i8 472); L1 223 GB/s, L2 117 GB/s, L3 98 GB/s, DRAM 24 GB/s"
std::string to_string(const Peaks& peaks);

}  // namespace tw
