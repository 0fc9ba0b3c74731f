#include "backends/llvm/nan_tests.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>

#include <optional>

namespace tw::codegen {
namespace {

using llvm::Value;

// from_bits(nan ? all ones : bits(number)), number = asked beyond before ? asked : before
struct Extreme {
  Value* nan = nullptr;
  Value* number = nullptr;
  Value *asked = nullptr, *before = nullptr;
  bool larger = false;
};

std::optional<Extreme> extreme_of(Value* value) {
  using namespace llvm::PatternMatch;
  Extreme e;
  Value* beyond = nullptr;
  if (!match(value,
             m_BitCast(m_Select(m_Value(e.nan), m_AllOnes(), m_BitCast(m_Value(e.number))))) ||
      !match(e.nan,
             m_SpecificFCmp(llvm::FCmpInst::FCMP_UNO, m_Value(e.asked), m_Deferred(e.asked))) ||
      !match(e.number, m_Select(m_Value(beyond), m_Specific(e.asked), m_Value(e.before))))
    return std::nullopt;
  const auto less = [&](Value* a, Value* b) {
    return match(beyond, m_SpecificFCmp(llvm::FCmpInst::FCMP_OLT, m_Specific(a), m_Specific(b)));
  };
  e.larger = less(e.before, e.asked);
  return e.larger || less(e.asked, e.before) ? std::optional(e) : std::nullopt;
}

}  // namespace

llvm::PreservedAnalyses JoinNanTestsPass::run(llvm::Function& function,
                                              llvm::FunctionAnalysisManager&) {
  llvm::DenseMap<Value*, Extreme> known;
  bool changed = false;
  for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function))
    for (llvm::Instruction& i : llvm::make_early_inc_range(*block)) {
      std::optional<Extreme> e = extreme_of(&i);
      if (!e) continue;
      const auto before = known.find(e->before);
      // The only uses are the comparison and the selection.
      if (before == known.end() || !e->before->hasNUses(2)) {
        known[&i] = *e;
        continue;
      }
      llvm::IRBuilder<> b(&i);
      Value *x = e->asked, *y = before->second.number;
      e->number = b.CreateSelect(e->larger ? b.CreateFCmpOLT(y, x) : b.CreateFCmpOLT(x, y), x, y);
      e->nan = b.CreateOr(e->nan, before->second.nan);
      Value* bits = b.CreateBitCast(e->number, i.getOperand(0)->getType());
      Value* joined = b.CreateBitCast(
          b.CreateSelect(e->nan, llvm::Constant::getAllOnesValue(bits->getType()), bits),
          i.getType());
      i.replaceAllUsesWith(joined);
      known[joined] = *e;
      changed = true;
    }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace tw::codegen
