// The values of a function at given iterations of its loops
#pragma once
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Instructions.h>

#include <map>
#include <optional>
#include <set>

namespace tw::codegen {

class IndexValues {
 public:
  explicit IndexValues(llvm::ScalarEvolution& evolution) : evolution_(evolution) {}

  void set(const llvm::Loop* loop, uint64_t iteration) { iterations_[loop] = iteration; }
  // nullopt: the value depends on data.
  std::optional<llvm::APInt> of(const llvm::Value* value);
  std::optional<llvm::APInt> of(const llvm::SCEV* value);
  // The loops whose iterations were read since the last call
  std::set<const llvm::Loop*> take_read() { return std::exchange(read_, {}); }
  void add_read(const std::set<const llvm::Loop*>& loops) {
    read_.insert(loops.begin(), loops.end());
  }

 private:
  std::optional<llvm::APInt> of_instruction(const llvm::Instruction& instruction);
  std::optional<llvm::APInt> of_binary(const llvm::BinaryOperator& binary);
  std::optional<llvm::APInt> of_recurrence(const llvm::SCEVAddRecExpr& recurrence);
  std::optional<llvm::APInt> of_list(const llvm::SCEVNAryExpr& list);

  llvm::ScalarEvolution& evolution_;
  std::map<const llvm::Loop*, uint64_t> iterations_;
  std::set<const llvm::Loop*> read_;
};

}  // namespace tw::codegen
