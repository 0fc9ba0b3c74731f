// 64-bit and 32-bit ARM. AArch64's baseline has all features that kernels use. ARMv7 and
// microcontrollers depend on VFPv4 and its half conversions.
#include "backends/cpu/traits.h"

namespace tw {
void fill_aarch64(CpuTraits& t, const FeatureSet&) {
  t.fma = t.half = t.saturates = true;
  t.rounding_bits = t.maximum_bits = 64;
  t.table_lookup = TableLookup::tbl4;
}

void fill_arm(CpuTraits& t, const FeatureSet& f) {
  t.tune_cpu.clear();  // LLVM has no such attribute for ARM
  t.fma = f.has("vfp4d16sp");
  t.rounding_bits = f.has("fp-armv8d16") ? 64 : f.has("fp-armv8d16sp") ? 32 : 0;
  t.half = f.has("fp16");
  t.wrong_fixed_point = t.no_half_to_double = f.has("mve.fp");
  t.flushes_subnormals = f.has("neon") || f.has("mve.fp");
  t.nan_by_mask = !f.has("mve.fp");
}
}  // namespace tw
