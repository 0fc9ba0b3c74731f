// The CPU backend: kernels by KernelEmitter, each in its own context and object; the model's program by emit_program.
#include "backends/backend.h"

#include "backends/llvm/codegen.h"
#include "backends/llvm/kernel_emitter.h"
#include "backends/llvm/target_machine.h"

namespace tw {
namespace {

class LlvmBackend : public Backend {
 public:
  LlvmBackend(Target target, CpuTraits traits) : target_(std::move(target)), traits_(std::move(traits)) {}

  Error supports(const Kernel& kernel) const override { return Error::success(); (void)kernel; }
  Expected<ObjectCode> compile(const Program&, const CodegenOptions&) const override { return make_error(DiagCode::unsupported, "later"); }

  Expected<std::string> compile_kernel(const Kernel& kernel) const override { return standalone(kernel, Stage::object); }

  Expected<std::string> disassemble(const Kernel& kernel, const std::string& stage) const override {
    if (stage == "llvm") return standalone(kernel, Stage::llvm_text);
    if (stage == "asm") return standalone(kernel, Stage::assembly);
    return make_error(DiagCode::invalid_argument, "no stage '{0}' of code generation; there are llvm and asm", stage);
  }

 private:
  enum class Stage { object, llvm_text, assembly };

  Expected<std::string> standalone(const Kernel& kernel, Stage stage) const {
    llvm::LLVMContext context;
    llvm::Module module(kernel.name, context);
    TW_ASSIGN(auto machine, make_target_machine(target_.triple, traits_));
    module.setDataLayout(machine->createDataLayout());
    TW_ASSIGN(EmittedKernel emitted, KernelEmitter(module, traits_, kernel, target_.fast_math).emit("tw_kernel", false));
    emitted.function->setLinkage(llvm::GlobalValue::InternalLinkage);
    add_entry(module, kernel, emitted.function);
    prepare_module(module, *machine, traits_);
    TW_TRY(run_passes(module, *machine, PassList::kernel));
    if (stage == Stage::llvm_text) {
      std::string text;
      llvm::raw_string_ostream(text) << module;
      return text;
    }
    return generate_code(module, *machine, stage == Stage::assembly, nullptr);
  }

  // void <name>(ptr buffers, ptr workspace, ptr symbols)
  static void add_entry(llvm::Module& module, const Kernel& kernel, llvm::Function* function) {
    llvm::IRBuilder<> b(module.getContext());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false);
    auto* entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kernel.name, module);
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", entry));
    std::vector<Value*> arguments = {llvm::ConstantPointerNull::get(b.getPtrTy())};
    uint64_t i = 0;
    for (const Buffer& buffer : kernel.buffers)
      if (buffer.role != BufferRole::temp) arguments.push_back(b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), entry->getArg(0), i++)));
    arguments.push_back(entry->getArg(1));
    for (uint64_t s = 0; s < kernel.symbols.size(); ++s)
      arguments.push_back(b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), entry->getArg(2), s)));
    b.CreateCall(function, arguments);
    b.CreateRetVoid();
  }

  Target target_;
  CpuTraits traits_;
};
}  // namespace

Expected<std::unique_ptr<Backend>> make_backend(const Target& target) {
  TW_ASSIGN(CpuTraits traits, cpu_traits(target));
  return std::make_unique<LlvmBackend>(target, std::move(traits));
}
}  // namespace tw
