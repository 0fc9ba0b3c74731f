#include "backends/llvm/far_angles.h"

#include <llvm/IR/Module.h>

#include <array>
#include <cmath>

#include "backends/llvm/math_detail.h"

namespace tw::codegen {
namespace {

constexpr unsigned kWordBits = 32, kWords = 7;  // words of 2/pi that one angle needs
constexpr const char* kFunction = "tw_far_angle";

// The bits of an angle m 2^e, m < 2^53, times 2/pi that are worth less than four quadrants. With
// 2/pi = sum of t[k] 2^(32 - 32 k) and e + 62 = 32 first + shift, they are the product of m <<
// shift and the words t[first] .. t[first + 6] modulo 2^224, in which 2^222 is a quadrant.
class FarAngle {
 public:
  explicit FarAngle(llvm::IRBuilder<>& b) : b(b) {}

  // {f64, i64} (f64)
  llvm::Function* emit(llvm::Module& module) {
    if (llvm::Function* known = module.getFunction(kFunction)) return known;
    llvm::IRBuilder<>::InsertPointGuard keep(b);
    auto* result = llvm::StructType::get(b.getDoubleTy(), b.getInt64Ty());
    auto* f = llvm::Function::Create(llvm::FunctionType::get(result, {b.getDoubleTy()}, false),
                                     llvm::GlobalValue::InternalLinkage, kFunction, module);
    f->addFnAttr(llvm::Attribute::NoInline);
    f->setDoesNotAccessMemory();
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", f));
    Value* angle = f->getArg(0);
    Value* bits = b.CreateBitCast(angle, b.getInt64Ty());
    read_angle(bits);
    multiply(module);
    Value* quadrant = b.CreateLShr(product[kWords - 1], 30);
    take_fraction();
    Value* negative = b.CreateICmpSLT(bits, b.getInt64(0));
    Value* rest = b.CreateFMul(fraction(),
                               llvm::ConstantFP::get(b.getDoubleTy(), math_detail::kHalfPi));
    rest = b.CreateFAdd(rest, b.CreateFSub(angle, angle));  // infinity gives NaN
    rest = b.CreateSelect(b.CreateXor(negative, turned), b.CreateFNeg(rest), rest);
    quadrant = b.CreateAdd(quadrant, b.CreateZExt(turned, b.getInt32Ty()));
    quadrant = b.CreateSelect(negative, b.CreateNeg(quadrant), quadrant);
    Value* both = b.CreateInsertValue(llvm::PoisonValue::get(result), rest, 0);
    b.CreateRet(b.CreateInsertValue(both, b.CreateSExt(quadrant, b.getInt64Ty()), 1));
    return f;
  }

 private:
  llvm::IRBuilder<>& b;
  Value* first = nullptr;                // i32
  std::array<Value*, 3> shifted{};       // words of m << shift, i32, the lowest first
  std::array<Value*, kWords> product{};  // i32, the lowest first
  Value* turned = nullptr;               // i1: the fraction was above a half

  Value* wide(Value* word) { return b.CreateZExt(word, b.getInt64Ty()); }
  Value* low(Value* sum) { return b.CreateTrunc(sum, b.getInt32Ty()); }
  Value* high(Value* sum) { return b.CreateLShr(sum, kWordBits); }

  void read_angle(Value* bits) {
    Value* mantissa = b.CreateOr(b.CreateAnd(bits, (uint64_t{1} << 52) - 1), uint64_t{1} << 52);
    Value* biased = b.CreateAnd(low(b.CreateLShr(bits, 52)), 0x7ff);
    Value* least = b.getInt32(1075 - 62);
    Value* position = b.CreateSub(b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, biased, least),
                                  least);
    first = b.CreateLShr(position, 5);
    Value* shift = b.CreateAnd(position, 31);
    // fshl gives the upper word for any shift.
    auto joined = [&](Value* upper, Value* lower) -> Value* {
      return b.CreateIntrinsic(llvm::Intrinsic::fshl, {b.getInt32Ty()}, {upper, lower, shift});
    };
    Value *bottom = low(mantissa), *top = low(high(mantissa));
    shifted = {b.CreateShl(bottom, shift), joined(top, bottom), joined(b.getInt32(0), top)};
  }

  void multiply(llvm::Module& module) {
    llvm::Constant* digits = llvm::ConstantDataArray::get(b.getContext(),
                                                          llvm::ArrayRef<uint32_t>(kTwoOverPi));
    auto* table = new llvm::GlobalVariable(module, digits->getType(), true,
                                           llvm::GlobalValue::PrivateLinkage, digits);
    product.fill(b.getInt32(0));
    for (unsigned row = 0; row < shifted.size(); ++row) {
      Value* carry = b.getInt64(0);
      for (unsigned i = 0; row + i < kWords; ++i) {
        Value* at = b.CreateAdd(first, b.getInt32(kWords - 1 - i));
        Value* digit = b.CreateLoad(b.getInt32Ty(), b.CreateGEP(b.getInt32Ty(), table, wide(at)));
        // (2^32 - 1)^2 + 2 (2^32 - 1) is the largest number of 64 bits, so the sum fits.
        Value* sum = b.CreateAdd(b.CreateMul(wide(shifted[row]), wide(digit)),
                                 b.CreateAdd(wide(product[row + i]), carry));
        product[row + i] = low(sum);
        carry = high(sum);
      }
    }
  }

  // Removes the quadrant's bits, and replaces a fraction above a half by its complement to one.
  void take_fraction() {
    for (unsigned i = kWords - 1; i > 0; --i)
      product[i] = b.CreateIntrinsic(llvm::Intrinsic::fshl, {b.getInt32Ty()},
                                     {product[i], product[i - 1], b.getInt32(2)});
    turned = b.CreateICmpSLT(product[kWords - 1], b.getInt32(0));
    for (Value*& word : product) word = b.CreateXor(word, b.CreateSExt(turned, b.getInt32Ty()));
  }

  // The fraction of a quadrant, from its upper words: no f64 is nearer to a whole quadrant than
  // 2^-62.
  Value* fraction() {
    Value* sum = nullptr;
    for (unsigned i = 2; i < kWords; ++i) {
      Value* part = b.CreateFMul(
          b.CreateUIToFP(product[i], b.getDoubleTy()),
          llvm::ConstantFP::get(b.getDoubleTy(), std::ldexp(1.0, -32 * int(kWords - i))));
      sum = sum ? b.CreateFAdd(sum, part) : part;
    }
    return sum;
  }
};
}  // namespace

ReducedAngle reduce_far_angle(Values& v, Value* angle) {
  llvm::IRBuilder<>& b = v.b;
  llvm::Function* function = FarAngle(b).emit(*b.GetInsertBlock()->getModule());
  const int count = Values::lanes(angle);
  if (!count) {
    Value* both = b.CreateCall(function, {angle});
    return {b.CreateExtractValue(both, 0), b.CreateExtractValue(both, 1)};
  }
  ReducedAngle all{llvm::PoisonValue::get(angle->getType()),
                   llvm::PoisonValue::get(v.with_lanes(b.getInt64Ty(), count))};
  for (uint64_t lane = 0; lane < static_cast<uint64_t>(count); ++lane) {
    Value* both = b.CreateCall(function, {b.CreateExtractElement(angle, lane)});
    all.rest = b.CreateInsertElement(all.rest, b.CreateExtractValue(both, 0), lane);
    all.quadrant = b.CreateInsertElement(all.quadrant, b.CreateExtractValue(both, 1), lane);
  }
  return all;
}
}  // namespace tw::codegen
