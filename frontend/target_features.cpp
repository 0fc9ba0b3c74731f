#include "frontend/target_features.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/AArch64TargetParser.h>
#include <llvm/TargetParser/ARMTargetParser.h>
#include <llvm/TargetParser/RISCVTargetParser.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>
#include <set>

#include "support/diag.h"
#include "support/most_like.h"

namespace tw {
namespace {

// The x86 features, of some 150, that change the code of kernels or belong to the levels x86-64-v2,
// -v3 and -v4. Others (virtual machines, key lockers, processor controls) would only narrow the
// machines that an artifact runs on.
constexpr const char* kUsefulX86[] = {"amx-bf16",
                                      "amx-complex",
                                      "amx-fp16",
                                      "amx-fp8",
                                      "amx-int8",
                                      "amx-tile",
                                      "avx",
                                      "avx10.1",
                                      "avx10.2",
                                      "avx2",
                                      "avx512bf16",
                                      "avx512bitalg",
                                      "avx512bw",
                                      "avx512cd",
                                      "avx512dq",
                                      "avx512f",
                                      "avx512fp16",
                                      "avx512ifma",
                                      "avx512vbmi",
                                      "avx512vbmi2",
                                      "avx512vl",
                                      "avx512vnni",
                                      "avx512vpopcntdq",
                                      "avxifma",
                                      "avxneconvert",
                                      "avxvnni",
                                      "avxvnniint16",
                                      "avxvnniint8",
                                      "bmi",
                                      "bmi2",
                                      "cmov",
                                      "crc32",
                                      "cx16",
                                      "cx8",
                                      "f16c",
                                      "fma",
                                      "fxsr",
                                      "gfni",
                                      "lzcnt",
                                      "mmx",
                                      "movbe",
                                      "popcnt",
                                      "sahf",
                                      "sse",
                                      "sse2",
                                      "sse3",
                                      "sse4.1",
                                      "sse4.2",
                                      "ssse3",
                                      "x87"};

bool useful_x86(llvm::StringRef feature) {
  return std::find(std::begin(kUsefulX86), std::end(kUsefulX86), feature) != std::end(kUsefulX86);
}

bool has(const std::vector<std::string>& features, const char* name) {
  return std::find(features.begin(), features.end(), name) != features.end();
}

std::vector<std::string> aarch64_features(const std::string& cpu) {
  const auto info = llvm::AArch64::parseCpu(cpu);
  std::vector<std::string> out;
  if (!info) return out;
  llvm::AArch64::ExtensionSet set;
  set.addCPUDefaults(*info);
  std::vector<std::string> signed_names;
  set.toLLVMFeatureList(signed_names);
  for (const std::string& name : signed_names)
    if (name.size() > 1 && name[0] == '+' && llvm::AArch64::targetFeatureToExtension(name))
      out.push_back(name.substr(1));
  return out;
}

std::vector<std::string> all_cpus(Arch arch) {
  llvm::SmallVector<llvm::StringRef> names;
  switch (arch) {
    case Arch::x86_64: llvm::X86::fillValidCPUArchList(names, true); break;
    case Arch::aarch64: llvm::AArch64::fillValidCPUArchList(names); break;
    case Arch::arm: llvm::ARM::fillValidCPUArchList(names); break;
    case Arch::riscv64: llvm::RISCV::fillValidCPUArchList(names, true); break;
  }
  std::vector<std::string> out = {"generic"};
  for (const llvm::StringRef name : names) out.push_back(name.str());
  return out;
}

// LLVM exports no list of x86 features. This one has those of its processors, and those that
// kernels use.
const std::set<std::string, std::less<>>& all_x86_features() {
  static const auto features = [] {
    std::set<std::string, std::less<>> all(std::begin(kUsefulX86), std::end(kUsefulX86));
    for (const std::string& cpu : all_cpus(Arch::x86_64)) {
      llvm::SmallVector<llvm::StringRef> names;
      if (cpu != "generic") llvm::X86::getFeaturesForCPU(cpu, names);
      for (const llvm::StringRef name : names) all.insert(name.str());
    }
    return all;
  }();
  return features;
}

}  // namespace

bool known_cpu(Arch arch, const std::string& cpu) {
  if (cpu == "generic") return true;
  switch (arch) {
    case Arch::x86_64: return llvm::X86::parseArchX86(cpu, true) != llvm::X86::CK_None;
    case Arch::aarch64: return llvm::AArch64::parseCpu(cpu).has_value();
    case Arch::arm: return llvm::ARM::parseCPUArch(cpu) != llvm::ARM::ArchKind::INVALID;
    case Arch::riscv64: return llvm::RISCV::parseCPU(cpu, true);
  }
  TW_UNREACHABLE("bad arch");
}

std::vector<std::string> like_cpu(Arch arch, const std::string& name) {
  return most_like(name, all_cpus(arch));
}

std::vector<std::string> like_feature(Arch arch, const std::string& name) {
  std::vector<std::string> all;
  if (arch == Arch::x86_64) all.assign(all_x86_features().begin(), all_x86_features().end());
  if (arch == Arch::aarch64)
    for (const auto& extension : llvm::AArch64::Extensions)
      if (extension.PosTargetFeature.size() > 1)
        all.push_back(extension.PosTargetFeature.drop_front().str());
  return most_like(name, std::move(all));
}

std::vector<std::string> cpu_features(Arch arch, const std::string& cpu) {
  switch (arch) {
    case Arch::x86_64: {
      llvm::SmallVector<llvm::StringRef> names;
      llvm::X86::getFeaturesForCPU(cpu == "generic" || !known_cpu(arch, cpu) ? "x86-64" : cpu,
                                   names);
      return normal_features(arch, {names.begin(), names.end()});
    }
    case Arch::aarch64: {
      const std::vector<std::string> names = aarch64_features(cpu);
      return normal_features(arch,
                             names.empty() ? std::vector<std::string>{"fp-armv8", "neon"} : names);
    }
    case Arch::arm: return {"neon", "vfp4"};
    case Arch::riscv64: return {"a", "c", "d", "f", "m"};
  }
  TW_UNREACHABLE("bad arch");
}

bool known_feature(Arch arch, const std::string& feature) {
  switch (arch) {
    case Arch::x86_64: return all_x86_features().contains(feature);
    case Arch::aarch64: return llvm::AArch64::targetFeatureToExtension("+" + feature).has_value();
    case Arch::arm:
    case Arch::riscv64: return !feature.empty();
  }
  TW_UNREACHABLE("bad arch");
}

std::vector<std::string> normal_features(Arch arch, const std::vector<std::string>& features) {
  std::set<std::string> out;
  for (const std::string& feature : features) {
    if (arch == Arch::x86_64) {
      llvm::StringMap<bool> implied;
      llvm::X86::updateImpliedFeatures(feature, true, implied);
      for (const auto& entry : implied)
        if (entry.getValue() && useful_x86(entry.getKey())) out.insert(entry.getKey().str());
      if (!useful_x86(feature)) continue;
    }
    out.insert(feature);
  }
  if (arch == Arch::x86_64) out.insert({"cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"});
  return {out.begin(), out.end()};
}

int default_vector_bits(Arch arch, const std::vector<std::string>& features) {
  switch (arch) {
    case Arch::x86_64:
      return has(features, "avx512vl") && has(features, "avx512bw") && has(features, "avx512dq")
                 ? 512
             : has(features, "avx2") ? 256
                                     : 128;
    case Arch::aarch64:
    case Arch::arm:
    case Arch::riscv64: return 128;
  }
  TW_UNREACHABLE("bad arch");
}

int default_vector_registers(Arch arch, const std::vector<std::string>& features) {
  switch (arch) {
    case Arch::x86_64: return has(features, "avx512vl") ? 32 : 16;
    case Arch::aarch64: return 32;
    case Arch::arm: return 16;
    case Arch::riscv64: return 32;
  }
  TW_UNREACHABLE("bad arch");
}

}  // namespace tw
