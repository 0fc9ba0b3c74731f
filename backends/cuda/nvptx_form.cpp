#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <mutex>

#include "backends/cuda/form.h"
#include "backends/llvm/target_machine.h"

extern "C" {  // NVPTX has no assembler, so LLVM's usual header of initializers lacks it
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tw::cuda {
namespace {

constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

class NvptxForm : public GpuForm {
 public:
  NvptxForm(const std::string& chip, const std::string& level) {
    traits_.cpu = chip;
    traits_.features = "+" + level;
    traits_.fma = traits_.half = traits_.saturates = true;
    traits_.rounding_bits = 64;
    int number = 0;  // 80 of sm_80, 90 of sm_90a
    llvm::StringRef(chip).drop_until(llvm::isDigit).consumeInteger(10, number);
    traits_.maximum_bits = number >= 80 ? 32 : 0;
    traits_.vector_bits = 128;
  }

  const CpuTraits& traits() const override { return traits_; }

  Expected<std::unique_ptr<llvm::TargetMachine>> machine() const override {
    static std::once_flag once;
    std::call_once(once, [] {
      LLVMInitializeNVPTXTargetInfo(), LLVMInitializeNVPTXTarget(), LLVMInitializeNVPTXTargetMC(),
          LLVMInitializeNVPTXAsmPrinter();
    });
    const llvm::Triple triple("nvptx64-nvidia-cuda");
    std::string reason;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, reason);
    if (!target)
      return make_error(DiagCode::unsupported, "no code generator for {0}: {1}", triple.str(),
                        reason);
    // As for the processor's code, so that the result does not depend on earlier compiles.
    codegen::set_llvm_options();
    return std::unique_ptr<llvm::TargetMachine>(
        target->createTargetMachine(triple, traits_.cpu, traits_.features, {}, std::nullopt,
                                    std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  }

  Value* thread_id(Values& v, const AxisPlace& place) const override {
    constexpr llvm::Intrinsic::ID kIds[2][3] = {
        {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y,
         llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z},
        {llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
         llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z}};
    return v.b.CreateZExt(
        v.b.CreateIntrinsic(kIds[place.group][place.dim], llvm::ArrayRef<llvm::Type*>(),
                            llvm::ArrayRef<Value*>()),
        v.b.getInt64Ty());
  }

  Value* shared(Values& v, const std::string& name, int64_t, int64_t bytes) const override {
    llvm::Module& module = *v.b.GetInsertBlock()->getModule();
    auto* type = llvm::ArrayType::get(v.b.getInt8Ty(), static_cast<uint64_t>(bytes));
    auto* array = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage,
                                           llvm::PoisonValue::get(type), name, nullptr,
                                           llvm::GlobalValue::NotThreadLocal, kSharedSpace);
    array->setAlignment(llvm::Align(64));
    return v.b.CreateAddrSpaceCast(array, v.b.getPtrTy());
  }

  void barrier(Values& v) const override {
    v.b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all,
                        llvm::ArrayRef<llvm::Type*>(), llvm::ArrayRef<Value*>{v.b.getInt32(0)});
  }

  void copy(Values& v, Value* to, Value* from, int64_t bytes, Value* there) const override {
    constexpr struct {
      int64_t bytes;
      llvm::Intrinsic::ID whole, zeros;
    } kCopies[] = {{4, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4,
                    llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s},
                   {8, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8,
                    llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s},
                   {16, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16,
                    llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s}};
    const auto* found = std::ranges::find(kCopies, bytes, [](const auto& c) { return c.bytes; });
    TW_CHECK(found != std::end(kCopies), "an asynchronous copy of {0} bytes", bytes);
    std::vector<Value*> arguments = {v.b.CreateAddrSpaceCast(to, v.b.getPtrTy(kSharedSpace)),
                                     v.b.CreateAddrSpaceCast(from, v.b.getPtrTy(kGlobalSpace))};
    if (there)
      arguments.push_back(
          v.b.CreateSelect(there, v.b.getInt32(static_cast<uint32_t>(bytes)), v.b.getInt32(0)));
    v.b.CreateIntrinsic(there ? found->zeros : found->whole, llvm::ArrayRef<llvm::Type*>(),
                        arguments);
  }
  void commit(Values& v) const override {
    v.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, llvm::ArrayRef<llvm::Type*>(),
                        llvm::ArrayRef<Value*>());
  }
  void await(Values& v, int64_t groups) const override {
    v.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, llvm::ArrayRef<llvm::Type*>(),
                        llvm::ArrayRef<Value*>{v.b.getInt32(static_cast<uint32_t>(groups))});
  }
  Expected<Value*> together(Values&, const Intrinsic&, llvm::ArrayRef<Value*>) const override {
    return nullptr;
  }

  void define(const std::string& name, llvm::Function& body,
              const LaunchPlan& plan) const override {
    llvm::LLVMContext& context = body.getContext();
    llvm::IRBuilder<> b(context);
    const auto parameters = body.getFunctionType()->params().drop_front();
    auto* kernel = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), parameters, false),
                                          llvm::GlobalValue::ExternalLinkage, name,
                                          body.getParent());
    kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
    std::string threads;
    for (const int64_t n : plan.items) threads += (threads.empty() ? "" : ",") + std::to_string(n);
    kernel->addFnAttr("nvvm.reqntid", threads);
    // Otherwise ptxas spills a few registers to fit more blocks.
    kernel->addFnAttr("nvvm.minctasm", "1");
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", kernel));
    std::vector<Value*> arguments = {llvm::ConstantPointerNull::get(b.getPtrTy())};
    for (llvm::Argument& a : kernel->args()) {
      const llvm::Argument& from = *body.getArg(a.getArgNo() + 1);
      a.setName(from.getName());
      llvm::AttrBuilder attributes(context, from.getAttributes());
      a.addAttrs(attributes);
      arguments.push_back(&a);
    }
    b.CreateCall(&body, arguments);
    b.CreateRetVoid();
  }

 private:
  CpuTraits traits_;
};

}  // namespace

std::unique_ptr<GpuForm> make_nvptx_form(const std::string& chip, const std::string& level) {
  return std::make_unique<NvptxForm>(chip, level);
}

}  // namespace tw::cuda
