// x86-64. The baseline is SSE2, without fused multiply-add, rounding instructions and f16
// conversion.
#include "backends/cpu/traits.h"

namespace tw {
void fill_x86(CpuTraits& t, const FeatureSet& f) {
  t.fma = f.has("fma") || f.has("avx512f");
  t.rounding_bits = f.has("sse4.1") ? 64 : 0;
  t.nearest = t.nan_by_mask = t.scalar_maximum = true;
  t.half = f.has("f16c") || f.has("avx512f");
  t.table_lookup = f.has("avx512vbmi") && t.vector_bits >= 512 ? TableLookup::vpermi2b
                   : f.has("avx2") && t.vector_bits >= 256     ? TableLookup::pshufb_256
                   : f.has("ssse3")                            ? TableLookup::pshufb_128
                                                               : TableLookup::none;
}
}  // namespace tw
