// Turns kernels into functions of an LLVM module, and the module into bytes.

#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/Scalar/InferAlignment.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/form.h"
#include "backends/device/thread_form.h"
#include "backends/llvm/codegen.h"
#include "backends/llvm/kernel_emitter.h"

namespace tw::cuda {
namespace {

class LaunchEnvironment : public codegen::KernelEnvironment {
 public:
  LaunchEnvironment(const Kernel& kernel, const LaunchPlan& plan, const device::ThreadForm& thread,
                    const GpuForm& form, const std::string& name)
      : thread_(thread), form_(form) {
    int64_t at = 0;
    for (const auto& [index, space] : plan.spaces) {
      if (space != device::Space::shared) continue;
      const Buffer& buffer = kernel.buffers[static_cast<size_t>(index)];
      int64_t bytes = dtype_bytes(buffer.dtype);
      for (const Expr& extent : buffer.shape) bytes *= *as_const(extent);
      places_[index] = {name + "." + buffer.name, at, bytes};
      at += (bytes + 63) / 64 * 64;
    }
  }

  const Ranges& variables() const override { return thread_.variables; }
  Value* variable(Values& v, const std::string& name) const override {
    for (int d = 0; d < 6; ++d)
      if (const AxisPlace place{d < 3, d % 3}; device::thread_variable(place) == name)
        return form_.thread_id(v, place);
    TW_UNREACHABLE("no thread variable '{0}'", name);
  }
  bool holds(BufferId buffer) const override { return places_.contains(buffer.index); }
  Value* buffer(Values& v, BufferId buffer) const override {
    const Piece& piece = places_.at(buffer.index);
    return form_.shared(v, piece.name, piece.at, piece.bytes);
  }
  void barrier(Values& v) const override { form_.barrier(v); }
  void copy(Values& v, Value* to, Value* from, int64_t bytes, Value* there) const override {
    form_.copy(v, to, from, bytes, there);
  }
  void commit(Values& v) const override { form_.commit(v); }
  void await(Values& v, int64_t groups) const override { form_.await(v, groups); }
  Expected<Value*> together(Values& v, const Intrinsic& intrinsic,
                            llvm::ArrayRef<Value*> operands) const override {
    return form_.together(v, intrinsic, operands);
  }

 private:
  struct Piece {
    std::string name;
    int64_t at = 0, bytes = 0;
  };
  const device::ThreadForm& thread_;
  const GpuForm& form_;
  std::map<int32_t, Piece> places_;
};

// The kernel that one thread of the launch runs. The thread's own buffers lie in registers or on
// its stack.
Kernel kernel_of(const device::ThreadForm& thread, const LaunchPlan& plan) {
  Kernel out = thread.kernel;
  for (size_t i = 0; i < out.buffers.size(); ++i) {
    Buffer& buffer = out.buffers[i];
    const auto space = plan.spaces.find(static_cast<int32_t>(i));
    const bool own = space == plan.spaces.end() || space->second == device::Space::own;
    const bool elsewhere = buffer.role != BufferRole::temp || buffer.scope == "global" ||
                           buffer.scope == "thread";
    if (!elsewhere && (!own || buffer.scope != "register")) buffer.scope = "stack";
  }
  return out;
}

bool threads_meet(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Stmt& n) { found |= is<stmt::Barrier, stmt::Wait>(n); });
  return found;
}

// With barriers, other threads use the same memory, so pointers that are written lose noalias.
void prepare(llvm::Function& body, bool meets) {
  body.setLinkage(llvm::GlobalValue::InternalLinkage);
  body.setVisibility(llvm::GlobalValue::DefaultVisibility);
  body.addFnAttr(llvm::Attribute::AlwaysInline);
  for (llvm::Argument& a : body.args())
    if (meets && a.getType()->isPointerTy() && !a.onlyReadsMemory())
      a.removeAttr(llvm::Attribute::NoAlias);
}

void run_pass(llvm::Module& module, llvm::function_ref<void(llvm::ModulePassManager&)> add) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  add(passes);
  passes.run(module, modules);
}

Error emit_launch(llvm::Module& module, const Kernel& kernel, const LaunchPlan& plan,
                  const Target& device, const GpuForm& form, const std::string& name) {
  TW_ASSIGN(const device::ThreadForm thread, device::thread_form(kernel, plan, device));
  const LaunchEnvironment environment(kernel, plan, thread, form, name);
  codegen::KernelEmitter emitter(module, form.traits(), kernel_of(thread, plan), device,
                                 &environment);
  TW_ASSIGN(codegen::EmittedKernel emitted, emitter.emit(name + ".body", 1));
  prepare(*emitted.function, threads_meet(thread.kernel.body));
  form.define(name, *emitted.function, plan);
  // Only the launched function has the attribute.
  for (llvm::Argument& a : emitted.function->args()) a.removeAttr(llvm::Attribute::NoAlias);
  return Error::success();
}

DeviceLaunch describe(const Kernel& kernel, const LaunchPlan& plan, const std::string& name) {
  DeviceLaunch launch{name, {}, {}, {}, {}};
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    if (kernel.buffers[i].role != BufferRole::temp) launch.buffers.push_back(static_cast<int>(i));
  launch.buffers.push_back(-1);
  for (size_t i = 0; i < kernel.symbols.size(); ++i) launch.symbols.push_back(static_cast<int>(i));
  for (size_t d = 0; d < 3; ++d) {
    launch.local[d] = Expr(plan.items[d]);
    launch.global[d] = simplify(plan.groups[d] * Expr(plan.items[d]));
  }
  return launch;
}

Expected<std::vector<DeviceLaunch>> emit_kernel(llvm::Module& module, const Kernel& kernel,
                                                const Target& device, const GpuForm& form,
                                                const std::string& name) {
  TW_ASSIGN(const device::LaunchPlans plans, device::plan_launches(kernel, device));
  std::vector<DeviceLaunch> launches;
  for (size_t i = 0; i < plans.launches.size(); ++i) {
    const std::string function = plans.launches.size() == 1 ? name : name + "_" + std::to_string(i);
    if (Error error = emit_launch(module, plans.kernel, plans.launches[i], device, form, function))
      return make_error(DiagCode::unsupported, "kernel '{0}': {1}", kernel.name,
                        error_text(std::move(error)));
    launches.push_back(describe(plans.kernel, plans.launches[i], function));
  }
  return launches;
}

}  // namespace

Expected<CudaCode> cuda_code(std::span<const Kernel* const> kernels, const Target& device,
                             const CudaForm& wanted) {
  std::unique_ptr<GpuForm> form;
  if (wanted.chip.empty()) {
    TW_ASSIGN(form, make_emulated_form());
  } else form = make_nvptx_form(wanted.chip, wanted.level);
  TW_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, form->machine());
  llvm::LLVMContext context;
  llvm::Module module("tilewright", context);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  CudaCode code;
  code.launches.resize(kernels.size());
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!kernels[k]) continue;
    TW_ASSIGN(code.launches[k],
              emit_kernel(module, *kernels[k], device, *form, "k" + std::to_string(k)));
  }
  codegen::prepare_module(module, *machine, form->traits());
  run_pass(module,
           [](llvm::ModulePassManager& passes) { passes.addPass(llvm::AlwaysInlinerPass()); });
  TW_TRY(codegen::run_passes(module, *machine));
  run_pass(module, [](llvm::ModulePassManager& passes) {
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::InferAlignmentPass()));
  });
  TW_ASSIGN(code.bytes, codegen::generate_code(module, *machine, !wanted.chip.empty(), nullptr));
  return code;
}

}  // namespace tw::cuda
