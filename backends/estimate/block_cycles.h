// What LLVM-MCA says of straight-line code.
#pragma once
#include <llvm/MC/MCInst.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/diag.h"

namespace llvm {
class TargetMachine;
}

namespace tw::codegen {

// Names of processors, in order, that have the same model as `cpu`, which is among them.
std::vector<std::string> processors_alike(const llvm::TargetMachine& machine,
                                          const std::string& cpu);

class BlockCycles {
 public:
  // cpu: whose scheduling model is asked, which may have more than the machine's code uses. Errors:
  // LLVM has no model of its instructions; it names a set of instructions instead of a processor,
  // for which LLVM takes the model of some processor.
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
