// Estimates straight-line code with LLVM-MCA.
#pragma once
#include <llvm/MC/MCInst.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "support/diag.h"

namespace llvm {
class TargetMachine;
}

namespace tw::codegen {

// The processors with the same model as `cpu`, itself included, in LLVM's order
std::vector<std::string> processors_alike(const llvm::TargetMachine& machine,
                                          const std::string& cpu);

class BlockCycles {
 public:
  // `cpu` names the scheduling model; it may have more features than the machine's code uses.
  // Errors: LLVM has no such model for it; or it names a set of instructions and no processor, and
  // the model is to be its own.
  static Expected<BlockCycles> create(const llvm::TargetMachine& machine, const std::string& cpu,
                                      const std::string& features, ProcessorModel model);
  BlockCycles(BlockCycles&&) noexcept;
  ~BlockCycles();

  // The cycles of one run of the block when it runs again and again, and every access hits the
  // first cache. Blocks must come in the order of the code, as settings of vectors stay in force.
  Expected<double> of(std::span<const llvm::MCInst> instructions);

 private:
  struct Model;
  explicit BlockCycles(std::unique_ptr<Model> model);
  std::unique_ptr<Model> model_;
};

}  // namespace tw::codegen
