#include "backends/estimate/machine_code.h"

#include <llvm/CodeGen/AsmPrinter.h>
#include <llvm/CodeGen/AsmPrinterHandler.h>
#include <llvm/CodeGen/CodeGenTargetMachineImpl.h>
#include <llvm/CodeGen/MachineDominators.h>
#include <llvm/CodeGen/MachineInstr.h>
#include <llvm/CodeGen/MachineLoopInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/TargetInstrInfo.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/TargetRegistry.h>

#include "backends/estimate/machine_runs.h"

namespace tw::codegen {
namespace {

// Shared by the two ends of LLVM's assembly printer, which see the same instruction one after the
// other
struct Code {
  std::vector<MachineBlock> blocks;
  std::string problem;
};

// Receives the instructions in place of an object file.
class Instructions : public llvm::MCStreamer {
 public:
  Instructions(llvm::MCContext& context, Code& code) : MCStreamer(context), code_(code) {}
  void emitInstruction(const llvm::MCInst& instruction, const llvm::MCSubtargetInfo&) override {
    if (!code_.blocks.empty()) code_.blocks.back().instructions.push_back(instruction);
  }
  bool emitSymbolAttribute(llvm::MCSymbol*, llvm::MCSymbolAttr) override { return true; }
  void emitCommonSymbol(llvm::MCSymbol*, uint64_t, llvm::Align) override {}

 private:
  Code& code_;
};

bool is_spill(const llvm::MachineInstr& instruction) {
  const llvm::TargetInstrInfo* info = instruction.getMF()->getSubtarget().getInstrInfo();
  return instruction.getSpillSize(info) || instruction.getRestoreSize(info) ||
         instruction.getFoldedSpillSize(info) || instruction.getFoldedRestoreSize(info);
}

// The loop around the block if it is an innermost one; else null
const llvm::MachineLoop* innermost_loop(const llvm::MachineLoopInfo& loops,
                                        const llvm::MachineBasicBlock* block) {
  const llvm::MachineLoop* loop = loops.getLoopFor(block);
  return loop && loop->isInnermost() ? loop : nullptr;
}

// Finds the block that an instruction belongs to.
class Blocks : public llvm::AsmPrinterHandler {
 public:
  Blocks(Code& code, const BlockRuns& runs) : code_(code), runs_(runs) {}
  void beginFunction(const llvm::MachineFunction* function) override {
    auto& code = const_cast<llvm::MachineFunction&>(*function);
    times_ = machine_block_runs(code, runs_);
    llvm::MachineDominatorTree tree(code);
    loops_ = std::make_unique<llvm::MachineLoopInfo>(tree);
  }
  void beginInstruction(const llvm::MachineInstr* instruction) override {
    if (instruction->isCall() && code_.problem.empty())
      code_.problem = "it calls other code, which an estimate does not see";
    if (instruction->getParent() != block_) begin_block(instruction->getParent());
    code_.blocks.back().spills += is_spill(*instruction);
  }
  void endFunction(const llvm::MachineFunction*) override {}
  void endModule() override {}

 private:
  void begin_block(const llvm::MachineBasicBlock* block) {
    block_ = block;
    MachineBlock& out = code_.blocks.emplace_back();
    out.runs = times_[block];
    if (block->getBasicBlock()) out.name = block->getBasicBlock()->getName().str();
    const llvm::MachineLoop* loop = innermost_loop(*loops_, block);
    if (!loop) return;
    out.loop = loop->getHeader()->getNumber(), out.header = loop->getHeader() == block;
  }

  Code& code_;
  const BlockRuns& runs_;
  std::map<const llvm::MachineBasicBlock*, double> times_;
  std::unique_ptr<llvm::MachineLoopInfo> loops_;
  const llvm::MachineBasicBlock* block_ = nullptr;
};

}  // namespace

Error with_machine_code(llvm::Module& module, llvm::TargetMachine& machine, const BlockRuns& runs,
                        const std::function<Error(const std::vector<MachineBlock>&)>& use) {
  Code code;
  llvm::legacy::PassManager passes;
  auto& generator = static_cast<llvm::CodeGenTargetMachineImpl&>(machine);
  llvm::TargetPassConfig* config = generator.createPassConfig(passes);
  passes.add(config);
  auto* functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  passes.add(functions);
  if (config->addISelPasses())
    return make_error(DiagCode::unsupported, "{0} has no code generator",
                      module.getTargetTriple().str());
  config->addMachinePasses();
  config->setInitialized();
  auto instructions = std::make_unique<Instructions>(functions->getMMI().getContext(), code);
  machine.getTarget().createNullTargetStreamer(*instructions);
  llvm::AsmPrinter* printer = machine.getTarget().createAsmPrinter(machine,
                                                                   std::move(instructions));
  printer->addAsmPrinterHandler(std::make_unique<Blocks>(code, runs));
  passes.add(printer);
  passes.run(module);
  if (!code.problem.empty()) return make_error(DiagCode::unsupported, "{0}", code.problem);
  return use(code.blocks);
}

}  // namespace tw::codegen
