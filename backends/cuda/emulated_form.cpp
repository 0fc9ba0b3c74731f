#include <llvm/TargetParser/Host.h>

#include <algorithm>

#include "backends/cuda/form.h"
#include "backends/llvm/kernel_emitter.h"
#include "backends/llvm/target_machine.h"
#include "ir/schedule/intrinsic.h"

namespace tw::cuda {
namespace {

// Indices of words in the state (form.h)
enum Word : uint64_t { kShared = 6, kBarrier, kCopy, kCommit, kWait, kTogether };

class EmulatedForm : public GpuForm {
 public:
  EmulatedForm(std::string triple, CpuTraits traits)
      : triple_(std::move(triple)), traits_(std::move(traits)) {}

  const CpuTraits& traits() const override { return traits_; }
  Expected<std::unique_ptr<llvm::TargetMachine>> machine() const override {
    return codegen::make_target_machine(triple_, traits_);
  }

  Value* thread_id(Values& v, const AxisPlace& place) const override {
    return word(v, v.b.getInt64Ty(),
                static_cast<uint64_t>(place.group ? place.dim : 3 + place.dim));
  }
  Value* shared(Values& v, const std::string&, int64_t at, int64_t) const override {
    return v.b.CreateGEP(v.b.getInt8Ty(), word(v, v.b.getPtrTy(), kShared), v.i64(at));
  }
  void barrier(Values& v) const override { call(v, kBarrier, {v.i64(places_++)}); }
  void copy(Values& v, Value* to, Value* from, int64_t bytes, Value* there) const override {
    call(v, kCopy,
         {to, from, v.i64(bytes), there ? v.b.CreateZExt(there, v.b.getInt64Ty()) : v.i64(1)});
  }
  void commit(Values& v) const override { call(v, kCommit, {}); }
  void await(Values& v, int64_t groups) const override { call(v, kWait, {v.i64(groups)}); }

  Expected<Value*> together(Values& v, const Intrinsic& intrinsic,
                            llvm::ArrayRef<Value*> operands) const override {
    llvm::Module& module = *v.b.GetInsertBlock()->getModule();
    TW_ASSIGN(const std::shared_ptr<const Kernel> semantics, semantics_of(intrinsic));
    TW_ASSIGN(llvm::Function * meaning, meaning_of(module, *semantics, intrinsic.name));
    std::vector<Value*> parts;
    std::vector<llvm::Constant*> bytes;
    Value* result = nullptr;
    llvm::Type* type = nullptr;
    for (Value* given : operands) {
      // A processor may lack registers for short floats.
      Value* operand = v.bits(given);
      const Buffer& parameter = semantics->buffers[parts.size()];
      parts.push_back(slot(v, operand->getType()));
      v.b.CreateStore(operand, parts.back());
      bytes.push_back(
          v.b.getInt64(operand->getType()->getPrimitiveSizeInBits().getFixedValue() / 8));
      if (parameter.role == BufferRole::output) result = parts.back(), type = operand->getType();
    }
    Value* list = slot(v, llvm::ArrayType::get(v.b.getPtrTy(), parts.size()));
    for (size_t i = 0; i < parts.size(); ++i)
      v.b.CreateStore(parts[i], v.b.CreateConstGEP1_64(v.b.getPtrTy(), list, i));
    auto* sizes_type = llvm::ArrayType::get(v.b.getInt64Ty(), bytes.size());
    auto* sizes = new llvm::GlobalVariable(module, sizes_type, true,
                                           llvm::GlobalValue::PrivateLinkage,
                                           llvm::ConstantArray::get(sizes_type, bytes));
    call(v, kTogether,
         {meaning, v.i64(intrinsic.emit.threads), v.i64(static_cast<int64_t>(parts.size())), list,
          sizes});
    return v.b.CreateLoad(type, result);
  }

  void define(const std::string& name, llvm::Function& body, const LaunchPlan&) const override {
    llvm::IRBuilder<> b(body.getContext());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
    auto* launched = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name,
                                            body.getParent());
    b.SetInsertPoint(llvm::BasicBlock::Create(body.getContext(), "entry", launched));
    std::vector<Value*> arguments = {launched->getArg(0)};
    for (unsigned i = 1; i < body.arg_size(); ++i) {
      Value* at = b.CreateLoad(b.getPtrTy(),
                               b.CreateConstGEP1_64(b.getPtrTy(), launched->getArg(1), i - 1));
      arguments.push_back(b.CreateLoad(body.getArg(i)->getType(), at));
    }
    b.CreateCall(&body, arguments);
    b.CreateRetVoid();
  }

 private:
  // Makes a function void (ptr operands) that applies the instruction to whole operands.
  Expected<llvm::Function*> meaning_of(llvm::Module& module, const Kernel& semantics,
                                       const std::string& intrinsic) const {
    const std::string name = "meaning." + intrinsic;
    if (llvm::Function* known = module.getFunction(name)) return known;
    Target here;
    here.triple = triple_;
    codegen::KernelEmitter emitter(module, traits_, semantics, here);
    TW_ASSIGN(const codegen::EmittedKernel emitted, emitter.emit(name + ".body", 1));
    emitted.function->setLinkage(llvm::GlobalValue::InternalLinkage);
    emitted.function->setVisibility(llvm::GlobalValue::DefaultVisibility);
    llvm::IRBuilder<> b(module.getContext());
    auto* function = llvm::Function::Create(
        llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
        llvm::GlobalValue::InternalLinkage, name, module);
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
    auto* none = llvm::ConstantPointerNull::get(b.getPtrTy());
    std::vector<Value*> arguments = {none};
    for (size_t i = 0; i < semantics.buffers.size(); ++i)
      arguments.push_back(
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), function->getArg(0), i)));
    // There is no workspace.
    while (arguments.size() < emitted.function->arg_size()) arguments.push_back(none);
    b.CreateCall(emitted.function, arguments);
    b.CreateRetVoid();
    return function;
  }

  static Value* slot(Values& v, llvm::Type* type) {
    llvm::BasicBlock& entry = v.b.GetInsertBlock()->getParent()->getEntryBlock();
    return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
  }

  void call(Values& v, Word which, std::vector<Value*> arguments) const {
    arguments.insert(arguments.begin(), state(v));
    std::vector<llvm::Type*> types;
    for (Value* a : arguments) types.push_back(a->getType());
    v.b.CreateCall(llvm::FunctionType::get(v.b.getVoidTy(), types, false),
                   word(v, v.b.getPtrTy(), which), arguments);
  }

  static Value* state(Values& v) { return v.b.GetInsertBlock()->getParent()->getArg(0); }
  static Value* word(Values& v, llvm::Type* type, uint64_t index) {
    return v.b.CreateLoad(type, v.b.CreateConstGEP1_64(v.b.getInt64Ty(), state(v), index));
  }

  std::string triple_;
  CpuTraits traits_;
  mutable int64_t places_ = 0;  // number of barriers so far
};

}  // namespace

Expected<std::unique_ptr<GpuForm>> make_emulated_form() {
  Target here;
  here.triple = llvm::sys::getProcessTriple();
  TW_ASSIGN(CpuTraits traits, baseline_traits(here));
  return std::make_unique<EmulatedForm>(here.triple, std::move(traits));
}

}  // namespace tw::cuda
