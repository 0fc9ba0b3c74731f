#include <llvm/TargetParser/Host.h>

#include "backends/cuda/form.h"
#include "backends/llvm/target_machine.h"

namespace tw {
namespace {

constexpr uint64_t kShared = 6, kBarrier = 7;   // words of the state, as form.h says

class EmulatedForm : public GpuForm {
 public:
  EmulatedForm(std::string triple, CpuTraits traits) : triple_(std::move(triple)), traits_(std::move(traits)) {}

  const CpuTraits& traits() const override { return traits_; }
  Expected<std::unique_ptr<llvm::TargetMachine>> machine() const override { return make_target_machine(triple_, traits_); }

  Value* thread_id(Values& v, const AxisPlace& place) const override { return word(v, v.b.getInt64Ty(), static_cast<uint64_t>(place.group ? place.dim : 3 + place.dim)); }
  Value* shared(Values& v, const std::string&, int64_t at, int64_t) const override {
    return v.b.CreateGEP(v.b.getInt8Ty(), word(v, v.b.getPtrTy(), kShared), v.i64(at));
  }
  void barrier(Values& v) const override {
    Value* function = word(v, v.b.getPtrTy(), kBarrier);
    v.b.CreateCall(llvm::FunctionType::get(v.b.getVoidTy(), {v.b.getPtrTy()}, false), function, {state(v)});
  }

  void define(const std::string& name, llvm::Function& body, const LaunchPlan&) const override {
    llvm::IRBuilder<> b(body.getContext());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
    auto* launched = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, body.getParent());
    b.SetInsertPoint(llvm::BasicBlock::Create(body.getContext(), "entry", launched));
    std::vector<Value*> arguments = {launched->getArg(0)};
    for (unsigned i = 1; i < body.arg_size(); ++i) {
      Value* at = b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), launched->getArg(1), i - 1));
      arguments.push_back(b.CreateLoad(body.getArg(i)->getType(), at));
    }
    b.CreateCall(&body, arguments);
    b.CreateRetVoid();
  }

 private:
  static Value* state(Values& v) { return v.b.GetInsertBlock()->getParent()->getArg(0); }
  static Value* word(Values& v, llvm::Type* type, uint64_t index) {
    return v.b.CreateLoad(type, v.b.CreateConstGEP1_64(v.b.getInt64Ty(), state(v), index));
  }

  std::string triple_;
  CpuTraits traits_;
};

}  // namespace

Expected<std::unique_ptr<GpuForm>> make_emulated_form() {
  Target here;
  here.triple = llvm::sys::getProcessTriple();
  TW_ASSIGN(CpuTraits traits, baseline_traits(here));
  return std::make_unique<EmulatedForm>(here.triple, std::move(traits));
}

}  // namespace tw
