// The numbers of a target's device of this driver.
#pragma once
#include "backends/vdla/timing.h"
#include "ir/target.h"

namespace tw::vdla {

// What an intrinsic emits: gemm(OUT, IN, WEIGHT), alu.add(OUT, IN) or alu.max(OUT, IN), each word a
// parameter of its semantics.
struct Emitted {
  std::optional<AluOp> alu;     // none: gemm
  std::string out, in, weight;  // weight: of gemm
  // What a sum or maximum begins with, so that the first operand alone is the result
  int64_t start() const { return alu == AluOp::max ? -128 : 0; }
};
// Errors: another text; semantics that are not what the operation computes.
Expected<Emitted> emitted_by(const Intrinsic& intrinsic);

struct Device {
  Config config;
  DramModel dram;
};
// From its scopes (sram.inp, sram.wgt, sram.acc, sram.prm), the intrinsic that emits gemm and the
// parameters. Errors: what is missing, what no core has.
Expected<Device> device_of(const Target& target);
const char* scope_of(Space space);  // the name of a memory in kernels

}  // namespace tw::vdla
