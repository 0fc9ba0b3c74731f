#include "backends/llvm/emit_core.h"

#include <llvm/ADT/StringExtras.h>

#include "backends/llvm/emit_calls.h"
#include "runtime/tilewright.h"

namespace tw::codegen {
namespace {

class CoreEmitter : CallEmitter {
 public:
  CoreEmitter(llvm::Module& module, const Program& program) : CallEmitter(module, program) {}

  void emit(const std::string& symbol) {
    for (size_t number = 0; number < program_.regions.size(); ++number) emit_region(number);
    llvm::Function* program = emit_dispatch(false);
    const auto count = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
    const std::vector<Constant*> fields = {count(program_.inputs.size()),
                                           count(program_.outputs.size()),
                                           count(program_.symbols.size()),
                                           alignments(),
                                           symbol_limits(),
                                           program,
                                           emit_arena_bytes("tw_arena_bytes", program_.arena_bytes),
                                           emit_misfit()};
    Constant* description = llvm::ConstantStruct::getAnon(fields);
    auto* core = new llvm::GlobalVariable(module_, description->getType(), true,
                                          llvm::GlobalValue::ExternalLinkage, description,
                                          "tw_core");
    core->setVisibility(llvm::GlobalValue::HiddenVisibility);
    emit_compute("tw_" + symbol + "_compute");
  }

 private:
  Constant* alignments() {
    std::vector<Constant*> bytes;
    for (const std::vector<TensorSpec>* tensors : {&program_.inputs, &program_.outputs})
      for (const TensorSpec& t : *tensors)
        bytes.push_back(b_.getInt8(static_cast<uint8_t>(dtype_bytes(t.dtype))));
    return array(b_.getInt8Ty(), bytes);
  }

  // i32 (ptr inputs, ptr outputs, ptr symbols, ptr arena, size_t arena_bytes)
  void emit_compute(const std::string& name) {
    Type* p = b_.getPtrTy();
    Type* size = module_.getDataLayout().getIntPtrType(module_.getContext());
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {p, p, p, p, size}, false);
    auto inner = module_.getOrInsertFunction("tw_compute", type);
    llvm::cast<llvm::Function>(inner.getCallee())
        ->setVisibility(llvm::GlobalValue::HiddenVisibility);
    llvm::Function* f = start(name, b_.getInt32Ty(), {p, p, p, p, size});
    f->setLinkage(llvm::GlobalValue::ExternalLinkage);
    std::vector<Value*> arguments;
    for (llvm::Argument& a : f->args()) arguments.push_back(&a);
    b_.CreateRet(b_.CreateCall(inner, arguments));
  }
};

}  // namespace

Error check_freestanding(const Program& program) {
  std::vector<Diag> problems;
  const auto problem = [&](std::string text, std::vector<std::string> notes) {
    problems.push_back({DiagCode::unsupported, std::move(text), {}, std::move(notes)});
  };
  if (!program.devices.empty())
    problem("a freestanding object has no devices: their drivers need an operating system", {});
  std::vector<std::string> read = program.data_symbols;
  for (const Program& region : program.regions)
    read.insert(read.end(), region.data_symbols.begin(), region.data_symbols.end());
  if (!read.empty() || program.growable_buffers > 0)
    problem(
        "a freestanding object has no sizes that data decide: memory for them is had while it runs",
        {"the sizes: " + llvm::join(read, ", ")});
  return make_error(std::move(problems));
}

void emit_core(llvm::Module& module, const Program& program, const std::string& symbol) {
  CoreEmitter(module, program).emit(symbol);
}

}  // namespace tw::codegen
