// x86-64: the baseline is SSE2, which has neither fused multiply-add nor rounding instructions nor f16 conversion.
#include "backends/cpu/traits.h"

namespace tw {
namespace {
constexpr const char* kExtensions[] = {
    "sse3",      "ssse3",     "sse4.1",     "sse4.2",     "popcnt",       "avx",        "avx2",       "fma",
    "f16c",      "bmi",       "bmi2",       "lzcnt",      "movbe",        "avx512f",    "avx512cd",   "avx512bw",
    "avx512dq",  "avx512vl",  "avx512ifma", "avx512vbmi", "avx512vbmi2",  "avx512vnni", "avx512bf16", "avx512bitalg",
    "avx512vpopcntdq", "avx512fp16", "avxvnni", "avxvnniint8", "amx-tile", "amx-int8",  "amx-bf16",   nullptr};

void fill(CpuTraits& t, bool (*has)(const void*, const char*), const void* context) {
  t.fma = has(context, "fma") || has(context, "avx512f");
  t.round = has(context, "sse4.1");
  t.half = has(context, "f16c") || has(context, "avx512f");
}
constexpr CpuArch kArch = {kExtensions, true, fill};
}  // namespace

const CpuArch& x86_arch() { return kArch; }
}  // namespace tw
