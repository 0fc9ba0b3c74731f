#include "backends/llvm/runtime_link.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Module.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <algorithm>

#include "runtime/embedded.h"

namespace tw {

namespace {

// Of runtime/ops the functions that the module calls, and what they call; the others are not even read.
void link_operators(llvm::Module& module) {
  const bool uses = std::any_of(module.begin(), module.end(), [](const llvm::Function& f) { return f.isDeclaration() && f.getName().starts_with("tw_op_"); });
  if (!uses) return;
  const std::string_view bitcode = ops_bitcode(module.getTargetTriple().str());
  auto buffer = llvm::MemoryBuffer::getMemBuffer(llvm::StringRef(bitcode.data(), bitcode.size()), "ops", false);
  auto operators = llvm::getOwningLazyBitcodeModule(std::move(buffer), module.getContext());
  TW_CHECK(bool(operators), "the embedded operators do not parse: {0}", llvm::toString(operators.takeError()));
  (*operators)->setTargetTriple(module.getTargetTriple());
  (*operators)->setDataLayout(module.getDataLayout());
  TW_CHECK(!llvm::Linker::linkModules(module, std::move(*operators), llvm::Linker::LinkOnlyNeeded), "the operators do not link into the generated code");
}

}  // namespace

Error link_runtime(llvm::Module& module, const std::vector<std::string_view>& keep) {
  const std::string triple = module.getTargetTriple().str();
  const std::string_view bitcode = runtime_bitcode(triple);
  if (bitcode.empty()) return make_error(DiagCode::unsupported, "there is no runtime for the target '{0}'", triple);
  link_operators(module);
  auto runtime = llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(bitcode.data(), bitcode.size()), "runtime"), module.getContext());
  TW_CHECK(bool(runtime), "the embedded runtime does not parse: {0}", llvm::toString(runtime.takeError()));
  (*runtime)->setTargetTriple(module.getTargetTriple());  // spelt otherwise, the same machine
  (*runtime)->setDataLayout(module.getDataLayout());
  TW_CHECK(!llvm::Linker::linkModules(module, std::move(*runtime)), "the runtime does not link into the generated code");
  llvm::internalizeModule(module, [&](const llvm::GlobalValue& value) {
    return value.hasDefaultVisibility() || std::find(keep.begin(), keep.end(), std::string_view(value.getName())) != keep.end();
  });
  return Error::success();
}

}  // namespace tw
