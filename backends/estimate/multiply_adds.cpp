#include "backends/estimate/multiply_adds.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Metadata.h>

namespace tw::codegen {
namespace {

constexpr const char* kNote = "tw.multiply_adds";

double lanes_of(const llvm::Instruction& instruction) {
  const auto* vector = llvm::dyn_cast<llvm::VectorType>(instruction.getType());
  return vector ? vector->getElementCount().getKnownMinValue() : 1;
}

bool is_product(const llvm::Value* value) {
  const auto* product = llvm::dyn_cast<llvm::BinaryOperator>(value);
  return product && product->hasOneUse() &&
         (product->getOpcode() == llvm::Instruction::FMul ||
          product->getOpcode() == llvm::Instruction::Mul);
}

bool is_sum(const llvm::Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub: return !instruction.getType()->getScalarType()->isIntegerTy(64);
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub: return true;
    default: return false;
  }
}

double multiply_adds_of(const llvm::Instruction& instruction) {
  if (const llvm::MDNode* note = instruction.getMetadata(kNote))
    return static_cast<double>(
        llvm::mdconst::extract<llvm::ConstantInt>(note->getOperand(0))->getSExtValue());
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    const llvm::Intrinsic::ID id = call->getIntrinsicID();
    return id == llvm::Intrinsic::fma || id == llvm::Intrinsic::fmuladd ? lanes_of(instruction) : 0;
  }
  const bool does = is_sum(instruction) && (is_product(instruction.getOperand(0)) ||
                                            is_product(instruction.getOperand(1)));
  return does ? lanes_of(instruction) : 0;
}

}  // namespace

void note_multiply_adds(llvm::Instruction& instruction, int64_t count) {
  llvm::LLVMContext& context = instruction.getContext();
  instruction.setMetadata(
      kNote, llvm::MDNode::get(context, llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
                                            llvm::Type::getInt64Ty(context), count))));
}

std::map<std::string, double> count_multiply_adds(const llvm::Function& function) {
  std::map<std::string, double> out;
  for (const llvm::BasicBlock& block : function) {
    double& count = out[block.getName().str()];
    for (const llvm::Instruction& instruction : block) count += multiply_adds_of(instruction);
  }
  return out;
}

}  // namespace tw::codegen
