// RISC-V, 64 bits: F and D bring fused multiply-add. Rounding to an integer has no scalar
// instruction before Zfa.
#include "backends/cpu/traits.h"

namespace tw {
void fill_riscv(CpuTraits& t, const FeatureSet& f) {
  t.fma = f.has("f") && f.has("d");
  t.rounding_bits = f.has("zfa") ? 64 : 0;
  t.half = f.has("zfhmin") && (!f.has("v") || f.has("zvfhmin"));
  t.saturates = f.has("v");
}
}  // namespace tw
