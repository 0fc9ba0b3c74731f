#include "backends/estimate/block_cycles.h"

#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/MCA/Context.h>
#include <llvm/MCA/CustomBehaviour.h>
#include <llvm/MCA/InstrBuilder.h>
#include <llvm/MCA/Pipeline.h>
#include <llvm/MCA/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace tw::codegen {
namespace mca = llvm::mca;
namespace {

// A block runs this often, or enough for this many instructions, both before and while its cycles
// are counted.
constexpr size_t kInstructions = 512, kLeastRuns = 4;

// Notes the cycles in which the last instructions of the two phases retire.
class Retired : public mca::HWEventListener {
 public:
  using HWEventListener::onEvent;
  Retired(unsigned first, unsigned last) : first_(first), last_(last) {}
  void onCycleEnd() override { ++cycle_; }
  void onEvent(const mca::HWInstructionEvent& event) override {
    if (event.Type != mca::HWInstructionEvent::Retired) return;
    if (event.IR.getSourceIndex() == first_) from_ = cycle_;
    if (event.IR.getSourceIndex() == last_) to_ = cycle_;
  }
  double cycles() const { return static_cast<double>(to_) - static_cast<double>(from_); }

 private:
  unsigned first_, last_;
  uint64_t cycle_ = 0, from_ = 0, to_ = 0;
};

bool is_processor(const std::string& cpu) {
  return !cpu.starts_with("generic") && !cpu.starts_with("x86-64");
}

}  // namespace

std::vector<std::string> processors_alike(const llvm::TargetMachine& machine,
                                          const std::string& cpu) {
  const auto processors = machine.getMCSubtargetInfo()->getAllProcessorDescriptions();
  const auto own = llvm::find_if(processors, [&](const auto& p) { return p.Key == cpu; });
  std::vector<std::string> out;
  for (const llvm::SubtargetSubTypeKV& other : processors)
    if (own != processors.end() && other.SchedModel == own->SchedModel && is_processor(other.Key))
      out.emplace_back(other.Key);
  return out;
}

struct BlockCycles::Model {
  std::unique_ptr<const llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<const llvm::MCInstrInfo> instructions;
  std::unique_ptr<const llvm::MCRegisterInfo> registers;
  std::unique_ptr<const llvm::MCInstrAnalysis> analysis;
  std::unique_ptr<mca::InstrumentManager> instruments;
  std::unique_ptr<mca::InstrPostProcess> post;
  const llvm::Target* target = nullptr;
  std::vector<mca::UniqueInstrument> set_up;  // settings of vectors that are in force

  // Builds the instruction under the vector settings in force.
  Expected<std::unique_ptr<mca::Instruction>> made(mca::InstrBuilder& builder,
                                                   const llvm::MCInst& instruction) {
    llvm::SmallVector<mca::UniqueInstrument> fresh = instruments->createInstruments(instruction);
    if (!fresh.empty())
      set_up.assign(std::move_iterator(fresh.begin()), std::move_iterator(fresh.end()));
    llvm::SmallVector<mca::Instrument*> now;
    for (const mca::UniqueInstrument& one : set_up) now.push_back(one.get());
    auto out = builder.createInstruction(instruction, now);
    if (!out) {
      llvm::consumeError(out.takeError());
      return make_error(DiagCode::unsupported, "LLVM's model of '{0}' does not know {1}",
                        subtarget->getCPU().str(),
                        instructions->getName(instruction.getOpcode()).str());
    }
    post->postProcessInstruction(**out, instruction);
    return std::move(*out);
  }
};

BlockCycles::BlockCycles(std::unique_ptr<Model> model) : model_(std::move(model)) {}
BlockCycles::BlockCycles(BlockCycles&&) noexcept = default;
BlockCycles::~BlockCycles() = default;

Expected<BlockCycles> BlockCycles::create(const llvm::TargetMachine& machine,
                                          const std::string& cpu, const std::string& features,
                                          ProcessorModel of) {
  static std::once_flag once;
  std::call_once(once, [] { LLVMInitializeRISCVTargetMCA(); });
  if (of == ProcessorModel::own && !is_processor(cpu))
    return make_error(DiagCode::unsupported,
                      "'{0}' is a set of instructions and no processor, which an estimate needs",
                      cpu);
  auto model = std::make_unique<Model>();
  model->target = &machine.getTarget();
  const llvm::Target& target = machine.getTarget();
  model->subtarget.reset(target.createMCSubtargetInfo(machine.getTargetTriple(), cpu, features));
  if (!model->subtarget->getSchedModel().hasInstrSchedModel())
    return make_error(DiagCode::unsupported,
                      "LLVM has no model of the processor '{0}' that says how long instructions "
                      "take",
                      cpu);
  model->instructions.reset(target.createMCInstrInfo());
  model->registers.reset(target.createMCRegInfo(machine.getTargetTriple()));
  model->analysis.reset(target.createMCInstrAnalysis(model->instructions.get()));
  model->instruments.reset(target.createInstrumentManager(*model->subtarget, *model->instructions));
  if (!model->instruments)
    model->instruments = std::make_unique<mca::InstrumentManager>(*model->subtarget,
                                                                  *model->instructions);
  model->post.reset(target.createInstrPostProcess(*model->subtarget, *model->instructions));
  if (!model->post)
    model->post = std::make_unique<mca::InstrPostProcess>(*model->subtarget, *model->instructions);
  return BlockCycles(std::move(model));
}

Expected<double> BlockCycles::of(std::span<const llvm::MCInst> instructions) {
  Model& m = *model_;
  mca::InstrBuilder builder(*m.subtarget, *m.instructions, *m.registers, m.analysis.get(),
                            *m.instruments, 100);
  std::vector<std::unique_ptr<mca::Instruction>> sequence;
  m.post->resetState();
  for (const llvm::MCInst& one : instructions) {
    // A model that runs the block in circles cannot return, and would warn about a return.
    if (m.analysis->isReturn(one)) continue;
    TW_ASSIGN(std::unique_ptr<mca::Instruction> made, m.made(builder, one));
    sequence.push_back(std::move(made));
  }
  if (sequence.empty()) return 0.0;
  const size_t runs = std::max(kLeastRuns, kInstructions / sequence.size());
  const auto length = static_cast<unsigned>(sequence.size()), half = static_cast<unsigned>(runs);
  mca::CircularSourceMgr source(sequence, 2 * half);
  std::unique_ptr<mca::CustomBehaviour> behaviour(
      m.target->createCustomBehaviour(*m.subtarget, source, *m.instructions));
  if (!behaviour)
    behaviour = std::make_unique<mca::CustomBehaviour>(*m.subtarget, source, *m.instructions);
  mca::Context context(*m.registers, *m.subtarget);
  const mca::PipelineOptions options(0, 0, 0, 0, 0, 0, true);
  const std::unique_ptr<mca::Pipeline> pipeline = context.createDefaultPipeline(options, source,
                                                                                *behaviour);
  Retired retired(half * length - 1, 2 * half * length - 1);
  pipeline->addEventListener(&retired);
  auto cycles = pipeline->run();
  if (!cycles) {
    llvm::consumeError(cycles.takeError());
    return make_error(DiagCode::unsupported, "LLVM-MCA cannot run a block of the kernel");
  }
  return retired.cycles() / half;
}

}  // namespace tw::codegen
