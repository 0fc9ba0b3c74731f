// The parts of a program besides its calls, in libraries and in freestanding objects: the choice of
// calls for a run, the bytes of arena, and the check of sizes.
#include <array>

#include "backends/llvm/emit_calls.h"

namespace tw::codegen {

llvm::Function* CallEmitter::emit_dispatch(bool with_clock) {
  const auto functions = [&](size_t begin, size_t end) {
    return std::array<llvm::Function*, 2>{emit_calls(false, begin, end),
                                          with_clock ? emit_calls(true, begin, end) : nullptr};
  };
  std::vector<std::pair<const FastPath*, std::array<llvm::Function*, 2>>> ways;
  for (auto path = program_.fast_paths.rbegin(); path != program_.fast_paths.rend(); ++path)
    ways.push_back({&*path, functions(path->begin, path->end)});
  const size_t end = program_.fast_paths.empty() ? program_.calls.size()
                                                 : program_.fast_paths.front().begin;
  ways.push_back({nullptr, functions(0, end)});
  llvm::Function* f = start("tw_program", b_.getInt32Ty(), {b_.getPtrTy()});
  const auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(module_.getContext(), name, f);
  };
  Value* call_ns = with_clock ? env_field(f->getArg(0), EnvField::call_ns) : nullptr;
  const Variables vars = load_symbols(env_field(f->getArg(0), EnvField::symbols));
  for (const auto& [path, calls] : ways) {
    llvm::BasicBlock* other = nullptr;
    if (path) {
      Value* fits = b_.getTrue();
      for (const auto& [symbol, size] : path->sizes)
        fits = b_.CreateAnd(
            fits, b_.CreateICmpEQ(vars.at(symbol), b_.getInt64(static_cast<uint64_t>(size))));
      llvm::BasicBlock* taken = block("taken");
      other = block("other");
      b_.CreateCondBr(fits, taken, other);
      b_.SetInsertPoint(taken);
    }
    llvm::BasicBlock *yes = nullptr, *no = block("plain");
    if (with_clock) b_.CreateCondBr(b_.CreateIsNotNull(call_ns), yes = block("profiled"), no);
    else b_.CreateBr(no);
    b_.SetInsertPoint(no);
    b_.CreateRet(b_.CreateCall(calls[0], {f->getArg(0)}));
    if (with_clock) {
      b_.SetInsertPoint(yes);
      if (!program_.fast_paths.empty())
        b_.CreateMemSet(call_ns, b_.getInt8(0), program_.calls.size() * sizeof(uint64_t),
                        llvm::MaybeAlign(8));
      b_.CreateRet(b_.CreateCall(calls[1], {f->getArg(0)}));
    }
    if (other) b_.SetInsertPoint(other);
  }
  return f;
}

llvm::Function* CallEmitter::emit_arena_bytes(const std::string& name, const Expr& bytes) {
  llvm::Function* f = start(name, b_.getInt64Ty(), {b_.getPtrTy()});
  b_.CreateRet(counted(bytes, load_symbols(f->getArg(0))));
  return f;
}

llvm::Constant* CallEmitter::emit_misfit() {
  if (program_.conditions.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
  llvm::Function* f = start("tw_misfit", b_.getPtrTy(), {b_.getPtrTy()});
  const Variables vars = load_symbols(f->getArg(0));
  Value* first = llvm::ConstantPointerNull::get(b_.getPtrTy());
  for (size_t i = program_.conditions.size(); i-- > 0;)
    first = b_.CreateSelect(holds(program_.conditions[i].holds, vars), first,
                            text(program_.conditions[i].what));
  b_.CreateRet(first);
  return f;
}

llvm::Constant* CallEmitter::symbol_limits() {
  std::vector<Constant*> limits;
  for (const std::string& s : program_.symbols) {
    const SymbolLimits range = limits_of(program_.limits, s);
    for (const int64_t limit : {range.least, range.most})
      limits.push_back(b_.getInt64(static_cast<uint64_t>(limit)));
  }
  return array(b_.getInt64Ty(), limits);
}

}  // namespace tw::codegen
