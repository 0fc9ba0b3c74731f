// 64-bit and 32-bit ARM. AArch64's baseline has all that a kernel wants; ARMv7 depends on VFPv4 and NEON.
#include "backends/cpu/traits.h"

namespace tw {
namespace {
constexpr const char* kAArch64[] = {"dotprod", "fullfp16", "fp16fml", "bf16", "i8mm", "rdm", "lse", "crc", "sve", "sve2", nullptr};
constexpr const char* kArm[] = {"vfp3", "vfp4", "neon", "fp16", "fp-armv8", "hwdiv", "hwdiv-arm", nullptr};

void fill_aarch64(CpuTraits& t, bool (*)(const void*, const char*), const void*) { t.fma = t.round = t.half = true; }
void fill_arm(CpuTraits& t, bool (*has)(const void*, const char*), const void* context) {
  t.fma = has(context, "vfp4");
  t.round = has(context, "fp-armv8");
  t.half = has(context, "fp16");
  t.register_i64 = false;
}
constexpr CpuArch kAArch64Arch = {kAArch64, true, fill_aarch64};
constexpr CpuArch kArmArch = {kArm, false, fill_arm};
}  // namespace

const CpuArch& aarch64_arch() { return kAArch64Arch; }
const CpuArch& arm_arch() { return kArmArch; }
}  // namespace tw
