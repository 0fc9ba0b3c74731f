#include "backends/llvm/codegen.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/CodeGen/MachineBasicBlock.h>
#include <llvm/CodeGen/MachineOptimizationRemarkEmitter.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>
#include <set>
#include <stdexcept>

#include "backends/llvm/compiler_faults.h"
#include "backends/llvm/lane_loads.h"
#include "backends/llvm/nan_tests.h"

namespace tw::codegen {
namespace {

// Counts the register allocator's remarks on innermost loops, and drops all others.
class SpillCounter : public llvm::DiagnosticHandler {
 public:
  SpillCounter(KernelReport* report, std::set<const llvm::BasicBlock*> outer_headers)
      : report_(report), outer_headers_(std::move(outer_headers)) {}
  bool isMissedOptRemarkEnabled(llvm::StringRef pass) const override { return pass == "regalloc"; }
  bool isAnalysisRemarkEnabled(llvm::StringRef pass) const override {
    return pass == "asm-printer";
  }
  bool isAnyRemarkEnabled() const override { return true; }
  const std::string& error() const { return error_; }  // an error in inline assembly, for instance
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    const auto* remark = llvm::dyn_cast<llvm::DiagnosticInfoOptimizationBase>(&info);
    if (!remark && info.getSeverity() == llvm::DS_Error) return note_error(info);
    if (!remark) return false;
    if (remark->getPassName() != "regalloc" || remark->getRemarkName() != "LoopSpillReloadCopies")
      return true;
    const auto* machine = llvm::dyn_cast<llvm::DiagnosticInfoMIROptimization>(&info);
    if (machine && machine->getBlock() &&
        outer_headers_.count(machine->getBlock()->getBasicBlock()))
      return true;
    for (const auto& argument : remark->getArgs()) {
      int64_t count = 0;
      if (llvm::StringRef(argument.Val).getAsInteger(10, count)) continue;
      if (argument.Key == "NumSpills" || argument.Key == "NumFoldedSpills")
        report_->spills += count;
      if (argument.Key == "NumReloads" || argument.Key == "NumFoldedReloads")
        report_->reloads += count;
    }
    return true;
  }

 private:
  bool note_error(const llvm::DiagnosticInfo& info) {
    llvm::raw_string_ostream text(error_);
    llvm::DiagnosticPrinterRawOStream printer(text);
    text << (error_.empty() ? "" : "; ");
    info.print(printer);
    return true;
  }

  KernelReport* report_;
  std::string error_;
  std::set<const llvm::BasicBlock*> outer_headers_;
};

std::set<const llvm::BasicBlock*> headers_of_outer_loops(llvm::Module& module) {
  std::set<const llvm::BasicBlock*> headers;
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    llvm::DominatorTree tree(f);
    llvm::LoopInfo loops(tree);
    for (llvm::Loop* loop : loops.getLoopsInPreorder())
      if (!loop->isInnermost()) headers.insert(loop->getHeader());
  }
  return headers;
}

Error verify_module(llvm::Module& module) {
#ifdef TW_VERIFY_EACH
  std::string text;
  llvm::raw_string_ostream os(text);
  if (llvm::verifyModule(module, &os)) {
    os << "\n";
    module.print(os, nullptr);
    TW_UNREACHABLE("invalid LLVM module {0}: {1}", module.getName(), text);
  }
#endif
  (void)module;
  return Error::success();
}

struct FatalError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// LLVM reports illegal code (an intrinsic that the cpu lacks) through one process-wide handler, and
// an exception is the only way out of it.
void install_throwing_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(
        [](void*, const char* reason, bool) { throw FatalError(reason); });
  });
}
}  // namespace

constexpr int kArmRegisters = 32;  // vector registers of AArch64

void prepare_module(llvm::Module& module, llvm::TargetMachine& machine, const CpuTraits& traits) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr(llvm::Attribute::NoUnwind);
    f.addFnAttr("target-cpu", traits.cpu);
    f.addFnAttr("target-features", traits.features);
    if (!traits.tune_cpu.empty()) f.addFnAttr("tune-cpu", traits.tune_cpu);
    // Otherwise LLVM turns an integer comparison of a float's bits with 0 into one of floats.
    if (traits.flushes_subnormals) f.addFnAttr("denormal-fp-math-f32", "dynamic,dynamic");
    f.addFnAttr("prefer-vector-width", std::to_string(traits.vector_bits));
    f.addFnAttr("min-legal-vector-width", std::to_string(traits.vector_bits));
  }
}

Error run_passes(llvm::Module& module, llvm::TargetMachine& machine) {
  TW_TRY(verify_module(module));
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(JoinNanTestsPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager pipeline;
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  pipeline.run(module, modules);
  if (machine.getTargetTriple().isAArch64())
    for (llvm::Function& f : module) load_lanes_together(f, kArmRegisters);
  for (llvm::Function& f : module) avoid_compiler_faults(f);
  for (llvm::Function& f : module)
    for (llvm::Instruction& i : llvm::make_range(
             f.isDeclaration() ? llvm::BasicBlock::iterator() : f.getEntryBlock().begin(),
             f.isDeclaration() ? llvm::BasicBlock::iterator() : f.getEntryBlock().end()))
      TW_CHECK(!llvm::isa<llvm::AllocaInst>(i) || !i.getName().starts_with("reg."),
               "register buffer '{0}' stays in memory", i.getName());
  return verify_module(module);
}

Error guarded(llvm::Module& module, KernelReport* report, const std::function<Error()>& generate) {
  KernelReport ignored;
  auto handler = std::make_unique<SpillCounter>(report ? report : &ignored,
                                                headers_of_outer_loops(module));
  const SpillCounter& said = *handler;  // the context owns the handler and lives as long
  module.getContext().setDiagnosticHandler(std::move(handler));
  install_throwing_handler();
  const auto refused = [&](llvm::StringRef why) {
    return make_error(DiagCode::unsupported, "{0}: the code generator refuses it: {1}",
                      module.getName(), why);
  };
  try {
    TW_TRY(generate());
  } catch (const FatalError& error) { return refused(error.what()); }
  return said.error().empty() ? Error::success() : refused(said.error());
}

Expected<std::string> generate_code(llvm::Module& module, llvm::TargetMachine& machine,
                                    bool assembly, KernelReport* report) {
  llvm::SmallVector<char, 0> bytes;
  TW_TRY(guarded(module, report, [&]() -> Error {
    llvm::raw_svector_ostream os(bytes);
    llvm::legacy::PassManager passes;
    auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    if (machine.addPassesToEmitFile(passes, os, nullptr, type))
      return make_error(DiagCode::unsupported, "{0} has no {1} writer",
                        module.getTargetTriple().str(), assembly ? "assembly" : "object");
    passes.run(module);
    return Error::success();
  }));
  return std::string(bytes.data(), bytes.size());
}
}  // namespace tw::codegen
