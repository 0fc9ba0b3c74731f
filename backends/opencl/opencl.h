// One scheduled kernel as OpenCL C 1.2 text. Loops bound to axes of level "block" and "thread"
// become work-groups and work-items. A sequence of several bound nests becomes several launches, in
// order: the end of a launch is the barrier between all work-groups.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

struct OpenClArgument {
  enum class Kind : uint8_t {
    // Two arguments of the function: a cl_mem, and a long with the byte offset of the buffer in it
    buffer,
    // Two arguments of the same kind; temps of scope global lie in it as workspace_layout(kernel)
    // says
    workspace,
    symbol,  // one argument: a long
  };
  Kind kind = Kind::buffer;
  int index = 0;  // index of a buffer or symbol of the kernel
};

struct OpenClLaunch {
  std::string function;
  std::vector<OpenClArgument> arguments;
  // Work-items of the launch and of a group, in the kernel's symbols; local numbers are constant
  std::array<Expr, 3> global, local;
  int64_t local_bytes = 0;  // bytes of the arrays that a group shares
};

struct OpenClSource {
  // Functions only; opencl_program assembles the text that a device compiles
  std::string text;
  std::vector<OpenClLaunch> launches;
  bool doubles = false;  // needs cl_khr_fp64
};

// The functions are `name`, or `name`_0, `name`_1, ... when there are several. Errors contain the
// kernel and the construct that OpenCL C (or the target) cannot express.
Expected<OpenClSource> emit_opencl(const Kernel& kernel, const Target& target,
                                   const std::string& name);

// One program of several kernels: the support functions that they call, then their text. It
// compiles with -cl-std=CL1.2, and with -cl-fp32-correctly-rounded-divide-sqrt if the device has
// CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT.
std::string opencl_program(std::span<const OpenClSource> sources);

}  // namespace tw
