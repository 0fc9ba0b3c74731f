// Identity and baselines of targets.
#include "ir/target.h"

#include <algorithm>

#include "support/diag.h"
#include "support/hash.h"

namespace tw {

const char* arch_name(Arch a) {
  switch (a) {
    case Arch::x86_64: return "x86_64";
    case Arch::aarch64: return "aarch64";
    case Arch::arm: return "arm";
    case Arch::riscv64: return "riscv64";
  }
  TW_UNREACHABLE("bad architecture");
}

Arch Target::arch() const {
  std::string first = triple.substr(0, triple.find('-'));
  if (first == "x86_64" || first == "amd64") return Arch::x86_64;
  if (first == "aarch64" || first == "arm64") return Arch::aarch64;
  if (first.rfind("arm", 0) == 0 || first.rfind("thumb", 0) == 0) return Arch::arm;
  if (first == "riscv64") return Arch::riscv64;
  TW_UNREACHABLE("the frontend let the triple '{0}' pass", triple);
}

bool Target::has(const std::string& feature) const { return std::find(features.begin(), features.end(), feature) != features.end(); }

// The part that generated code depends on.
static std::string codegen_text(const Target& t) {
  std::string text = "triple: " + t.triple + "\ncpu: " + t.cpu + "\nfeatures: [";
  for (size_t i = 0; i < t.features.size(); ++i) text += (i ? ", " : "") + t.features[i];
  text += llvm::formatv("]\ncaches: {{l1: {0}, l2: {1}, l3: {2}}\nvector_bits: {3}\nvector_registers: {4}\nfast_math: {5}\n", t.l1_bytes,
                        t.l2_bytes, t.l3_bytes, t.vector_bits, t.vector_registers, t.fast_math ? "true" : "false")
              .str();
  return text;
}

std::string print(const Target& t) {
  return "name: " + t.name + "\n" + codegen_text(t) + llvm::formatv("cores: {0}\naccuracy: {1}\n", t.cores, llvm::formatv("{0:e}", t.accuracy)).str();
}

std::string codegen_hash(const Target& target) { return short_hash(codegen_text(target)); }

Target baseline_target(Arch arch) {
  Target t;
  t.name = std::string(arch_name(arch)) + "-baseline";
  t.cpu = "generic";
  switch (arch) {
    case Arch::x86_64:
      t.triple = "x86_64-linux-gnu";
      t.cpu = "x86-64";
      t.features = {"sse", "sse2"};
      break;
    case Arch::aarch64:
      t.triple = "aarch64-linux-gnu";
      t.features = {"fp-armv8", "neon"};
      t.vector_registers = 32;
      break;
    case Arch::arm:
      t.triple = "armv7-linux-gnueabihf";
      t.features = {"neon", "vfp4"};
      break;
    case Arch::riscv64:
      t.triple = "riscv64-linux-gnu";
      t.cpu = "generic-rv64";
      t.features = {"a", "c", "d", "f", "m"};
      break;
  }
  return t;
}

}  // namespace tw
