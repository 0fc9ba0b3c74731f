// RISC-V, 64 bits: fused multiply-add comes with F and D; rounding to integer has no instruction before Zfa.
#include "backends/cpu/traits.h"

namespace tw {
namespace {
constexpr const char* kExtensions[] = {"v", "zvl128b", "zvl256b", "zvl512b", "zfhmin", "zfh", "zvfhmin", "zvfh", "zfa", "zba", "zbb", "zbs", nullptr};

void fill(CpuTraits& t, bool (*has)(const void*, const char*), const void* context) {
  t.fma = has(context, "f") && has(context, "d");
  t.round = has(context, "zfa");
  t.half = has(context, "zfhmin") && (!has(context, "v") || has(context, "zvfhmin"));
}
constexpr CpuArch kArch = {kExtensions, true, fill};
}  // namespace

const CpuArch& riscv_arch() { return kArch; }
}  // namespace tw
