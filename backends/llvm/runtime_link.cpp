#include "backends/llvm/runtime_link.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Module.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBufferRef.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <algorithm>

#include "runtime/embedded.h"

namespace tw {

Error link_runtime(llvm::Module& module, const std::vector<std::string_view>& keep) {
  const std::string triple = module.getTargetTriple().str();
  const std::string_view bitcode = runtime_bitcode(triple);
  if (bitcode.empty()) return make_error(DiagCode::unsupported, "there is no runtime for the target '{0}'", triple);
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
