#include "backends/cpu/traits.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <memory>

#include "backends/cpu/llvm_target.h"
#include "ir/freestanding.h"
#include "runtime/embedded.h"

namespace tw {
namespace {
std::string plus_list(const std::vector<std::string>& features) {
  std::string text;
  for (const std::string& f : features) text += (text.empty() ? "+" : ",+") + f;
  return text;
}

class LlvmFeatures : public FeatureSet {
 public:
  static Expected<LlvmFeatures> of(const Target& target) {
    TW_ASSIGN(const llvm::Target* llvm_target, find_llvm_target(target.triple));
    const llvm::Triple triple(llvm::Triple::normalize(target.triple));
    // LLVM itself would only warn about an unknown cpu.
    std::unique_ptr<llvm::MCSubtargetInfo> info(llvm_target->createMCSubtargetInfo(triple, "", ""));
    if (!target.cpu.empty() && !info->isCPUStringValid(target.cpu))
      return make_error(DiagCode::invalid_argument, "cpu '{0}' is not known for {1}", target.cpu,
                        target.triple);
    for (const std::string& feature : target.features) {
      auto known = llvm::find_if(info->getAllProcessorFeatures(),
                                 [&](const auto& f) { return feature == f.Key; });
      if (known == info->getAllProcessorFeatures().end())
        return make_error(DiagCode::invalid_argument, "feature '{0}' is not known for {1}", feature,
                          target.triple);
    }
    info.reset(llvm_target->createMCSubtargetInfo(triple, target.cpu, plus_list(target.features)));
    return LlvmFeatures(std::move(info));
  }
  bool has(const std::string& feature) const override {
    return info_->checkFeatures("+" + feature);
  }

 private:
  explicit LlvmFeatures(std::unique_ptr<llvm::MCSubtargetInfo> info) : info_(std::move(info)) {}
  std::unique_ptr<llvm::MCSubtargetInfo> info_;
};

Target baseline_of(const Target& target) {
  Target base = baseline_target(target.arch());
  base.triple = target.triple;
  if (is_freestanding(target.triple)) {  // no run-time check: the processor is the target's
    base.features = target.features;
    if (target.arch() == Arch::arm) base.cpu = target.cpu;
  }
  return base;
}
}  // namespace

Expected<CpuTraits> cpu_traits(const Target& target) {
  Target base = baseline_of(target);
  TW_ASSIGN(LlvmFeatures baseline, LlvmFeatures::of(base));
  TW_TRY(LlvmFeatures::of(target).takeError());  // reports unknown names
  // The code may use the features of the description only, even if its processor has more.
  Target listed = base;
  listed.features = target.features;
  TW_ASSIGN(LlvmFeatures effective, LlvmFeatures::of(listed));

  CpuTraits traits;
  traits.cpu = base.cpu;
  traits.tune_cpu = target.cpu;
  traits.vector_bits = target.vector_bits;
  std::vector<std::string> features = base.features;
  for (std::string_view name : runtime_cpu_features(target.triple)) {
    std::string f(name);
    if (baseline.has(f) || !effective.has(f)) continue;
    features.push_back(f);
    traits.checked.push_back(f);
  }
  std::sort(traits.checked.begin(), traits.checked.end());
  traits.features = plus_list(features);
  traits.usable = features;

  Target usable = base;
  usable.features = features;
  TW_ASSIGN(LlvmFeatures used, LlvmFeatures::of(usable));
  switch (target.arch()) {
    case Arch::x86_64: fill_x86(traits, used); break;
    case Arch::aarch64: fill_aarch64(traits, used); break;
    case Arch::arm: fill_arm(traits, used); break;
    case Arch::riscv64: fill_riscv(traits, used); break;
  }
  return traits;
}

Expected<CpuTraits> baseline_traits(const Target& target) {
  return cpu_traits(baseline_of(target));
}
}  // namespace tw
