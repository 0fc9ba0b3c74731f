// Stages that run while a model is compiled: those that fill temps of scope constant.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "ir/schedule/schedule.h"

namespace tw {

// The contents of a parameter, in terms of another kernel's parameters
struct ParameterSource {
  size_t parameter = 0;  // the other kernel's, by number
  // Makes the contents from those of that parameter: kernel (x: in .., y: out ..). null: they are
  // equal
  std::shared_ptr<const Kernel> pack;
};

// A kernel as it runs, without constant stages
struct RunKernel {
  Kernel kernel;
  std::vector<ParameterSource> sources;  // by parameter
};

// Takes the constant stages out of a scheduled kernel. Their temps become constant parameters,
// which stand where the constants stood from which they are made. A constant that no other stage
// reads is no parameter any more. A stage that reads no constant, whose values are zero, stays.
RunKernel take_out_constant_stages(Kernel scheduled);

// `next` is made from first.kernel; the result has its sources in terms of first's.
RunKernel joined(const RunKernel& first, RunKernel next);

// Applies the schedule, and takes the constant stages out.
Expected<RunKernel> apply_to_run(const Kernel& kernel, const Schedule& schedule,
                                 const Target* target = nullptr);

}  // namespace tw
