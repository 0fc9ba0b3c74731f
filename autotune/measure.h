// Measuring as plain values: jobs and results could travel to another machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autotune/record.h"
#include "ir/dtype.h"

namespace tw {

struct MeasureLimits { double timeout = 5, least_time = 0.02, relative_interval = 0.02; int most_samples = 50; double clearly_slower = 0; };
struct BufferSpec { uint64_t bytes = 0; DType dtype = DType::f32; bool input = true, constant = false; };
struct MeasureJob {
  std::string library /* bytes of a shared library */, symbol;
  std::vector<BufferSpec> buffers;
  uint64_t workspace_bytes = 0;
  std::vector<int64_t> symbols;
  uint64_t seed = 0;
  MeasureLimits limits;
  std::vector<std::byte> expected;   // bytes of the outputs to compare with, empty: not compared
  double tolerance = 1e-4;
};
struct MeasureResult { Status status = Status::ok; std::vector<double> seconds; std::string error; std::string device; bool contended = false; };
class Transport { public: virtual ~Transport() = default; virtual std::vector<MeasureResult> run(std::span<const MeasureJob> jobs) = 0; };

}  // namespace tw
