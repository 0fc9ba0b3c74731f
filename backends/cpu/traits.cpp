#include "backends/cpu/traits.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Triple.h>

#include <memory>

#include "backends/llvm/target_machine.h"

namespace tw {
namespace {
const CpuArch& arch_of(Arch arch) {
  switch (arch) {
    case Arch::x86_64: return x86_arch();
    case Arch::aarch64: return aarch64_arch();
    case Arch::arm: return arm_arch();
    case Arch::riscv64: return riscv_arch();
  }
  TW_UNREACHABLE("an architecture");
}

std::string plus_list(const std::vector<std::string>& features) {
  std::string text;
  for (const std::string& f : features) text += (text.empty() ? "+" : ",+") + f;
  return text;
}

bool has_feature(const void* context, const char* feature) {
  return static_cast<const llvm::MCSubtargetInfo*>(context)->checkFeatures("+" + std::string(feature));
}

Expected<std::unique_ptr<llvm::MCSubtargetInfo>> subtarget(const Target& target) {
  TW_ASSIGN(const llvm::Target* llvm_target, find_llvm_target(target.triple));
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvm_target->createMCSubtargetInfo(llvm::Triple(target.triple), target.cpu, plus_list(target.features)));
  if (!info || (!target.cpu.empty() && !info->isCPUStringValid(target.cpu)))
    return make_error(DiagCode::invalid_argument, "cpu '{0}' is not known for {1}", target.cpu, target.triple);
  return info;
}
}  // namespace

Expected<CpuTraits> cpu_traits(const Target& target) {
  const CpuArch& arch = arch_of(target.arch());
  Target base = baseline_target(target.arch());
  base.triple = target.triple;
  TW_ASSIGN(auto baseline, subtarget(base));
  TW_ASSIGN(auto effective, subtarget(target));

  CpuTraits traits;
  traits.cpu = base.cpu;
  if (arch.tune_attribute) traits.tune_cpu = target.cpu;
  std::vector<std::string> features = base.features;
  for (const char* const* e = arch.extensions; *e; ++e) {
    if (!has_feature(effective.get(), *e)) continue;
    features.emplace_back(*e);
    if (!has_feature(baseline.get(), *e)) traits.checked.emplace_back(*e);
  }
  traits.features = plus_list(features);
  traits.vector_bits = target.vector_bits;
  arch.fill(traits, has_feature, effective.get());
  return traits;
}
}  // namespace tw
