#include "backends/llvm/target_machine.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#include "backends/cpu/llvm_target.h"
#include "ir/freestanding.h"

namespace tw::codegen {
namespace {
template <typename T>
void set_option(const char* name, T value) {
  llvm::cl::Option* option = llvm::cl::getRegisteredOptions().lookup(name);
  TW_CHECK(option, "LLVM has no option '{0}'", name);
  auto* typed = static_cast<llvm::cl::opt<T>*>(option);
  if (typed->getValue() != value) typed->setValue(value);
}
}  // namespace

void set_llvm_options() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  // Jumps of x86 code must not touch the end of a 32-byte line. Since the microcode fix for erratum
  // SKX102, Intel's Skylake to Cascade Lake decode such a line again each time, which slows a
  // register tile's loop. On other chips the padding costs a few no-ops in a loop. It is in
  // assembled code; assembly text does not show it.
  set_option("x86-branches-within-32B-boundaries", true);
  // Two parts of code generation take time with the square of a block's memory accesses, and
  // unrolled candidates of a search have thousands. The schedulers' graph is cut where nothing
  // moves anyway. Merging of stores is off, because kernels have their vectors already.
  set_option("dag-maps-huge-region", 200u);
  set_option("combiner-store-merging", false);
}

Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const std::string& triple,
                                                                   const CpuTraits& traits) {
  TW_ASSIGN(const llvm::Target* target, find_llvm_target(triple));
  set_llvm_options();
  llvm::TargetOptions options;
  options.MCOptions.AsmVerbose = true;
  // Tables of addresses then lie in flash, and such code never moves.
  const auto relocation = is_microcontroller(triple) ? llvm::Reloc::Static : llvm::Reloc::PIC_;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      llvm::Triple(llvm::Triple::normalize(triple)), traits.cpu, traits.features, options,
      relocation, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}
}  // namespace tw::codegen
