// What code generation must know of a CPU: one file an architecture decides, from the Target's features only.
#pragma once
#include <string>
#include <vector>

#include "ir/target.h"
#include "support/diag.h"

namespace tw {

struct CpuTraits {
  std::string cpu;                   // function attribute target-cpu: the baseline, so that only listed extensions are used
  std::string tune_cpu;              // tune-cpu: scheduling model; empty where the architecture has no such attribute
  std::string features;              // target-features: "+avx2,+fma"
  std::vector<std::string> checked;  // extensions beyond the baseline that the code may use: the artifact asks the processor for them
  bool fma = false;                  // fused multiply-add of f32 and f64 is an instruction
  bool round = false;                // so are floor, ceil, trunc and round-to-even
  bool half = false;                 // and f16 <-> f32 conversion
  bool register_i64 = true;          // 64-bit integers fit a register: their division makes no library call
  int vector_bits = 128;
};

// An extension counts as present when the Target lists it or its cpu implies it. Error: an unknown triple or cpu.
Expected<CpuTraits> cpu_traits(const Target& target);

// One architecture's part; `has` answers for the effective feature set.
struct CpuArch {
  const char* const* extensions;     // null-terminated: LLVM's names of those that generated code may use beyond the baseline
  bool tune_attribute;
  void (*fill)(CpuTraits& traits, bool (*has)(const void* context, const char* feature), const void* context);
};
const CpuArch& x86_arch();
const CpuArch& aarch64_arch();
const CpuArch& arm_arch();
const CpuArch& riscv_arch();

}  // namespace tw
