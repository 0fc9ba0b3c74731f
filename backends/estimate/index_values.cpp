#include "backends/estimate/index_values.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

namespace tw::codegen {
namespace {
using llvm::APInt;

std::optional<APInt> join(llvm::SCEVTypes type, const APInt& a, const APInt& b) {
  switch (type) {
    case llvm::scAddExpr: return a + b;
    case llvm::scMulExpr: return a * b;
    case llvm::scSMaxExpr: return llvm::APIntOps::smax(a, b);
    case llvm::scSMinExpr: return llvm::APIntOps::smin(a, b);
    case llvm::scUMaxExpr: return llvm::APIntOps::umax(a, b);
    case llvm::scUMinExpr:
    case llvm::scSequentialUMinExpr: return llvm::APIntOps::umin(a, b);
    default: return std::nullopt;
  }
}

APInt converted(const APInt& value, bool is_signed, unsigned bits) {
  return is_signed ? value.sextOrTrunc(bits) : value.zextOrTrunc(bits);
}
}  // namespace

std::optional<APInt> IndexValues::of(const llvm::Value* value) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) return constant->getValue();
  if (!value->getType()->isIntegerTy()) return std::nullopt;
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  return instruction ? of_instruction(*instruction) : std::nullopt;
}

std::optional<APInt> IndexValues::of_binary(const llvm::BinaryOperator& binary) {
  const std::optional<APInt> a = of(binary.getOperand(0)), b = of(binary.getOperand(1));
  // One known side may decide the result.
  const bool is_and = binary.getOpcode() == llvm::Instruction::And;
  const bool is_or = binary.getOpcode() == llvm::Instruction::Or;
  for (const std::optional<APInt>& one : {a, b})
    if (one && ((is_and && one->isZero()) || (is_or && one->isAllOnes()))) return one;
  if (!a || !b) return std::nullopt;
  const bool shifts = b->ult(a->getBitWidth());
  switch (binary.getOpcode()) {
    case llvm::Instruction::Add: return *a + *b;
    case llvm::Instruction::Sub: return *a - *b;
    case llvm::Instruction::Mul: return *a * *b;
    case llvm::Instruction::And: return *a & *b;
    case llvm::Instruction::Or: return *a | *b;
    case llvm::Instruction::Xor: return *a ^ *b;
    case llvm::Instruction::Shl: return shifts ? std::optional(a->shl(*b)) : std::nullopt;
    case llvm::Instruction::LShr: return shifts ? std::optional(a->lshr(*b)) : std::nullopt;
    case llvm::Instruction::AShr: return shifts ? std::optional(a->ashr(*b)) : std::nullopt;
    case llvm::Instruction::UDiv: return b->isZero() ? std::nullopt : std::optional(a->udiv(*b));
    case llvm::Instruction::SDiv: return b->isZero() ? std::nullopt : std::optional(a->sdiv(*b));
    case llvm::Instruction::URem: return b->isZero() ? std::nullopt : std::optional(a->urem(*b));
    case llvm::Instruction::SRem: return b->isZero() ? std::nullopt : std::optional(a->srem(*b));
    default: return std::nullopt;
  }
}

std::optional<APInt> IndexValues::of_instruction(const llvm::Instruction& instruction) {
  if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction))
    return of_binary(*binary);
  if (llvm::isa<llvm::PHINode>(instruction)) {
    const llvm::SCEV* known = evolution_.getSCEV(const_cast<llvm::Instruction*>(&instruction));
    return llvm::isa<llvm::SCEVUnknown>(known) ? std::nullopt : of(known);
  }
  if (const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction)) {
    const std::optional<APInt> a = of(compare->getOperand(0)), b = of(compare->getOperand(1));
    if (!a || !b) return std::nullopt;
    return APInt(1, llvm::ICmpInst::compare(*a, *b, compare->getPredicate()));
  }
  if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction)) {
    const std::optional<APInt> condition = of(select->getCondition());
    if (!condition) return std::nullopt;
    return of(condition->isZero() ? select->getFalseValue() : select->getTrueValue());
  }
  if (const auto* minimum = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&instruction)) {
    const std::optional<APInt> a = of(minimum->getLHS()), b = of(minimum->getRHS());
    if (!a || !b) return std::nullopt;
    return llvm::ICmpInst::compare(*a, *b, minimum->getPredicate()) ? a : b;
  }
  if (const auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(&instruction))
    return of(frozen->getOperand(0));
  if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) {
    if (!cast->isIntegerCast()) return std::nullopt;
    const std::optional<APInt> from = of(cast->getOperand(0));
    if (!from) return std::nullopt;
    return converted(*from, llvm::isa<llvm::SExtInst>(cast), cast->getType()->getIntegerBitWidth());
  }
  return std::nullopt;
}

std::optional<APInt> IndexValues::of_recurrence(const llvm::SCEVAddRecExpr& recurrence) {
  const auto iteration = iterations_.find(recurrence.getLoop());
  if (iteration == iterations_.end() || !recurrence.isAffine()) return std::nullopt;
  read_.insert(recurrence.getLoop());
  const std::optional<APInt> start = of(recurrence.getStart());
  const std::optional<APInt> step = of(recurrence.getStepRecurrence(evolution_));
  if (!start || !step) return std::nullopt;
  return *start + *step * APInt(64, iteration->second).zextOrTrunc(step->getBitWidth());
}

std::optional<APInt> IndexValues::of_list(const llvm::SCEVNAryExpr& list) {
  std::optional<APInt> out;
  for (const llvm::SCEV* operand : list.operands()) {
    const std::optional<APInt> next = of(operand);
    if (!next) return std::nullopt;
    out = out ? join(list.getSCEVType(), *out, *next) : next;
    if (!out) return std::nullopt;
  }
  return out;
}

std::optional<APInt> IndexValues::of(const llvm::SCEV* value) {
  if (!value->getType()->isIntegerTy()) return std::nullopt;
  if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(value)) return constant->getAPInt();
  if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(value))
    return of(unknown->getValue());
  if (const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(value))
    return of_recurrence(*recurrence);
  if (const auto* list = llvm::dyn_cast<llvm::SCEVNAryExpr>(value)) return of_list(*list);
  if (const auto* divide = llvm::dyn_cast<llvm::SCEVUDivExpr>(value)) {
    const std::optional<APInt> a = of(divide->getLHS()), b = of(divide->getRHS());
    if (!a || !b || b->isZero()) return std::nullopt;
    return a->udiv(*b);
  }
  if (const auto* cast = llvm::dyn_cast<llvm::SCEVCastExpr>(value)) {
    const std::optional<APInt> from = of(cast->getOperand());
    if (!from) return std::nullopt;
    return converted(*from, llvm::isa<llvm::SCEVSignExtendExpr>(cast),
                     cast->getType()->getIntegerBitWidth());
  }
  return std::nullopt;
}

}  // namespace tw::codegen
