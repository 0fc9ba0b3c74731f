#include "backends/llvm/compiler_faults.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <numeric>
#include <optional>
#include <vector>

namespace tw::codegen {
namespace {

template <typename Kind>
std::vector<Kind*> all_of(llvm::Function& f) {
  std::vector<Kind*> found;
  for (llvm::Instruction& i : llvm::instructions(f))
    if (auto* one = llvm::dyn_cast<Kind>(&i)) found.push_back(one);
  return found;
}

// True if the comparison, its inverse or a part of it may ask for this operand to be the greater
// one. Predicates that test only if two numbers have an order compare both ways, so they count for
// both operands.
bool may_be_greater(llvm::CmpInst::Predicate predicate, unsigned operand) {
  switch (predicate) {
    case llvm::CmpInst::FCMP_OEQ:
    case llvm::CmpInst::FCMP_UNE: return false;
    case llvm::CmpInst::FCMP_OLT:
    case llvm::CmpInst::FCMP_OLE:
    case llvm::CmpInst::FCMP_UGE:
    case llvm::CmpInst::FCMP_UGT: return operand == 1;
    case llvm::CmpInst::FCMP_OGT:
    case llvm::CmpInst::FCMP_OGE:
    case llvm::CmpInst::FCMP_ULE:
    case llvm::CmpInst::FCMP_ULT: return operand == 0;
    default: return true;
  }
}

// MVE's comparisons `lt` and `le` hold for NaN. LLVM uses them for `gt` and `ge` with swapped
// operands when the greater operand is one number in all lanes, so this hides that fact from LLVM.
void keep_orders(llvm::Function& f) {
  for (llvm::FCmpInst* compare : all_of<llvm::FCmpInst>(f))
    for (const unsigned operand : {0U, 1U}) {
      llvm::Value* value = compare->getOperand(operand);
      if (!compare->getType()->isVectorTy() || !may_be_greater(compare->getPredicate(), operand) ||
          !llvm::getSplatValue(value))
        continue;
      llvm::IRBuilder<> b(compare);
      compare->setOperand(operand, b.CreateArithmeticFence(value, value->getType()));
    }
}

std::optional<uint64_t> only_lane_of(llvm::Value* mask) {
  auto* lanes = llvm::dyn_cast<llvm::Constant>(mask);
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(mask->getType());
  if (!lanes || !type) return std::nullopt;
  std::optional<uint64_t> only;
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    llvm::Constant* lane = lanes->getAggregateElement(i);
    if (!lane || (!lane->isOneValue() && !lane->isNullValue())) return std::nullopt;
    if (lane->isNullValue()) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

// For AVX-512, LLVM stores the only active lane of a narrowed vector in its wider type, over the
// bytes behind it.
void store_only_lanes(llvm::Function& f) {
  for (llvm::IntrinsicInst* store : all_of<llvm::IntrinsicInst>(f)) {
    if (store->getIntrinsicID() != llvm::Intrinsic::masked_store) continue;
    const unsigned mask = store->arg_size() - 1;
    const std::optional<uint64_t> lane = only_lane_of(store->getArgOperand(mask));
    if (!lane) continue;
    llvm::IRBuilder<> b(store);
    llvm::Value* element = b.CreateExtractElement(store->getArgOperand(0), *lane);
    llvm::Value* place = b.CreateConstInBoundsGEP1_64(element->getType(), store->getArgOperand(1),
                                                      *lane);
    const llvm::Align vector = store->getParamAlign(1).valueOrOne();
    const uint64_t bytes = *lane * element->getType()->getScalarSizeInBits() / 8;
    b.CreateAlignedStore(element, place, llvm::commonAlignment(vector, bytes));
    store->eraseFromParent();
  }
}

// For AArch64, LLVM stores three bytes that are narrowed from 64-bit numbers from the wrong lanes.
void store_three_bytes_apart(llvm::Function& f) {
  for (llvm::StoreInst* store : all_of<llvm::StoreInst>(f)) {
    llvm::Value* value = store->getValueOperand();
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (!type || type->getNumElements() != 3 || !type->getElementType()->isIntegerTy(8) ||
        llvm::isa<llvm::Constant>(value))
      continue;
    llvm::IRBuilder<> b(store);
    for (unsigned lane = 0; lane < 3; ++lane)
      b.CreateAlignedStore(
          b.CreateExtractElement(value, lane),
          b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), store->getPointerOperand(), lane),
          llvm::commonAlignment(store->getAlign(), lane));
    store->eraseFromParent();
  }
}

// For MVE, LLVM never ends on an extension of integers that were shuffled and fill more than half
// of a register, but not all of it. The lanes behind that half are extended one by one.
void extend_half_registers(llvm::Function& f) {
  constexpr unsigned kHalfBits = 64;
  for (llvm::CastInst* cast : all_of<llvm::CastInst>(f)) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(cast->getDestTy());
    if (!type || !llvm::isa<llvm::SExtInst, llvm::ZExtInst>(cast)) continue;
    llvm::Value* narrow = cast->getOperand(0);
    const unsigned count = type->getNumElements();
    const unsigned half = kHalfBits / narrow->getType()->getScalarSizeInBits();
    if (count <= half || count >= 2 * half) continue;
    llvm::IRBuilder<> b(cast);
    const auto extended = [&](llvm::Value* v, llvm::Type* to) {
      return b.CreateCast(cast->getOpcode(), v, to);
    };
    std::vector<int> lanes(count, -1);
    std::iota(lanes.begin(), lanes.begin() + half, 0);
    llvm::Value* first = b.CreateShuffleVector(narrow, llvm::ArrayRef(lanes).take_front(half));
    llvm::Value* whole = b.CreateShuffleVector(
        extended(first, llvm::FixedVectorType::get(type->getElementType(), half)), lanes);
    for (unsigned lane = half; lane < count; ++lane)
      whole = b.CreateInsertElement(
          whole, extended(b.CreateExtractElement(narrow, lane), type->getElementType()), lane);
    cast->replaceAllUsesWith(whole);
    cast->eraseFromParent();
  }
}
}  // namespace

void avoid_compiler_faults(llvm::Function& function) {
  if (function.isDeclaration()) return;
  const llvm::StringRef features = function.getFnAttribute("target-features").getValueAsString();
  if (features.contains("+mve")) extend_half_registers(function);
  if (features.contains("+mve.fp")) keep_orders(function);
  store_only_lanes(function);
  if (function.getParent()->getTargetTriple().isAArch64()) store_three_bytes_apart(function);
}
}  // namespace tw::codegen
