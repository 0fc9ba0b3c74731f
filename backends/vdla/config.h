// Reads the device's configuration from a target.
#pragma once
#include "backends/vdla/timing.h"
#include "ir/target.h"

namespace tw::vdla {

// The parsed `emit` of an intrinsic: gemm(OUT, IN, WEIGHT), alu.add(OUT, IN) or alu.max(OUT, IN).
// Each word in capitals stands for a parameter of its semantics.
struct Emitted {
  std::optional<AluOp> alu;     // empty: gemm
  std::string out, in, weight;  // weight: for gemm only
  // Initial value of a sum or maximum that leaves the first operand unchanged
  int64_t start() const { return alu == AluOp::max ? -128 : 0; }
};
// Errors: any other text, or semantics that the operation does not compute.
Expected<Emitted> emitted_by(const Intrinsic& intrinsic);

struct Device {
  Config config;
  DramModel dram;
};
// Reads its scopes (sram.inp, sram.wgt, sram.acc, sram.prm), the intrinsic that emits gemm, and the
// parameters. Errors: missing parts, or a configuration that no core has.
Expected<Device> device_of(const Target& target);
const char* scope_of(Space space);  // name of a memory in kernels

}  // namespace tw::vdla
