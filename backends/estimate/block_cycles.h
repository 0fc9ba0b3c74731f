// What LLVM-MCA says of straight-line code.
#pragma once
#include <llvm/MC/MCInst.h>

#include <memory>
#include <span>

#include "support/diag.h"

namespace llvm {
class TargetMachine;
}

namespace tw::codegen {

class BlockCycles {
 public:
  // cpu: whose scheduling model is asked, which may have more than the machine's code uses. Error:
  // LLVM has no model of its instructions.
  static Expected<BlockCycles> create(const llvm::TargetMachine& machine, const std::string& cpu,
                                      const std::string& features);
  BlockCycles(BlockCycles&&) noexcept;
  ~BlockCycles();

  // Cycles of one run of the block where it runs again and again, with every access a hit in the
  // first cache. Blocks come in the order of the code: what is set up for vectors stays so.
  Expected<double> of(std::span<const llvm::MCInst> instructions);

 private:
  struct Model;
  explicit BlockCycles(std::unique_ptr<Model> model);
  std::unique_ptr<Model> model_;
};

}  // namespace tw::codegen
