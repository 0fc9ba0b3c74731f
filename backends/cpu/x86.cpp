// x86-64: the baseline is SSE2, which has neither fused multiply-add nor rounding instructions nor
// f16 conversion.
#include "backends/cpu/traits.h"

namespace tw {
void fill_x86(CpuTraits& t, const FeatureSet& f) {
  t.fma = f.has("fma") || f.has("avx512f");
  t.round = f.has("sse4.1");
  t.half = f.has("f16c") || f.has("avx512f");
}
}  // namespace tw
