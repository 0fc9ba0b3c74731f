// The numbers of a target's device of this driver.
#pragma once
#include "backends/vdla/timing.h"
#include "ir/target.h"

namespace tw::vdla {

// What intrinsics of a target may emit.
inline constexpr const char *kGemm = "gemm(acc, inp, wgt)", *kMax = "alu.max(acc, src)";

struct Device {
  Config config;
  DramModel dram;
};
// From its scopes (sram.inp, sram.wgt, sram.acc, sram.prm), the intrinsic that emits kGemm and the
// parameters. Errors: what is missing, what no core has.
Expected<Device> device_of(const Target& target);
const char* scope_of(Space space);  // the name of a memory in kernels

}  // namespace tw::vdla
