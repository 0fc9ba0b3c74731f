// sum[lane] += i32(x[k]) * i32(w[n * lane + k]) + .. + i32(x[k + n - 1]) * i32(w[n * lane + k + n -
// 1]) of narrow integers: x's numbers are one load of 32 bits for all lanes, w's a whole vector,
// and one instruction multiplies and adds neighbours. n = 2: x of 16 bits, w of 8 or 16; LLVM joins
// the sum where the processor does that too (AVX512-VNNI). n = 4: x of 8 bits without a sign, w
// with one.
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/memory_emitter.h"

namespace tw::codegen {
namespace {

constexpr size_t kMostTogether = 4;

// The products of a sum, in order. False: other terms, or too many.
bool collect(const Expr& e, std::vector<Expr>& products) {
  if (e->kind != ExprKind::binary || products.size() == kMostTogether) return false;
  if (e->binary == BinaryOp::mul) return products.push_back(e), true;
  return e->binary == BinaryOp::add && collect(e->args[0], products) &&
         collect(e->args[1], products);
}

// What i32(load) reads; null: it is something else.
const ExprNode* narrow_load(const Expr& e) {
  if (e->kind != ExprKind::cast || e->type != DType::i32 || e->args[0]->kind != ExprKind::load)
    return nullptr;
  const DType t = e->args[0].type();
  return t == DType::i8 || t == DType::u8 || t == DType::i16 ? e->args[0].get() : nullptr;
}

// b is the element behind a.
bool adjacent(const IndexForm& a, const IndexForm& b) {
  if (b.constant != a.constant + 1 || a.terms.size() != b.terms.size()) return false;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const IndexTerm &s = a.terms[i], &t = b.terms[i];
    if (s.coefficient != t.coefficient ||
        !std::ranges::equal(s.factors, t.factors,
                            [](const Expr& x, const Expr& y) { return equal(x, y); }))
      return false;
  }
  return true;
}

llvm::Intrinsic::ID instruction_for(size_t together, int lanes) {
  using namespace llvm::Intrinsic;
  switch (lanes) {
    case 4: return together == 2 ? x86_sse2_pmadd_wd : x86_avx512_vpdpbusd_128;
    case 8: return together == 2 ? x86_avx2_pmadd_wd : x86_avx512_vpdpbusd_256;
    case 16: return together == 2 ? x86_avx512_pmaddw_d_512 : x86_avx512_vpdpbusd_512;
    default: return not_intrinsic;
  }
}

}  // namespace

Value* ExpressionEmitter::add_products(const Expr& e, Value* sum) {
  std::vector<Expr> products;
  if (lanes_.mask || !collect(e, products) || products.size() % 2 != 0) return nullptr;
  const size_t together = products.size();
  const llvm::Intrinsic::ID instruction = instruction_for(together, lanes_.count);
  if (instruction == llvm::Intrinsic::not_intrinsic ||
      lanes_.count * 32 > (together == 2 ? v_.traits.pair_bits : v_.traits.quad_bits))
    return nullptr;
  // Of each product: the factor of one number for all lanes, the factor of a number a lane
  const ExprNode* loads[kMostTogether][2] = {};
  const auto form = [&](const ExprNode* load) -> const IndexForm& {
    return memory_.form_of(load, load->buffer, load->args);
  };
  for (size_t p = 0; p < together; ++p) {
    for (const Expr& factor : products[p]->args) {
      const ExprNode* read = narrow_load(factor);
      if (!read || kernel_.buffer(read->buffer).scope == "register") return nullptr;
      const bool by_lane = std::ranges::any_of(form(read).terms, [&](const IndexTerm& t) {
        return std::ranges::any_of(t.factors,
                                   [&](const Expr& f) { return uses_var(f, lanes_.var); });
      });
      loads[p][by_lane] = read;
    }
    for (int i = 0; i < 2; ++i)
      if (!loads[p][i] || (p > 0 && (loads[p][i]->buffer != loads[p - 1][i]->buffer ||
                                     !adjacent(form(loads[p - 1][i]), form(loads[p][i])))))
        return nullptr;
  }
  const BufferId one = loads[0][0]->buffer, many = loads[0][1]->buffer;
  const DType t = kernel_.buffer(many).dtype;
  if (kernel_.buffer(one).dtype != (together == 2 ? DType::i16 : DType::u8) ||
      (together == 4 && t != DType::i8))
    return nullptr;
  const Access number = memory_.access_of(form(loads[0][0])),
               row = memory_.access_of(form(loads[0][1]));
  if (number.lane_offsets || number.lane_stride != 0 || row.lane_offsets ||
      row.lane_stride != static_cast<int64_t>(together))
    return nullptr;
  auto& b = v_.b;
  const int numbers = static_cast<int>(together) * lanes_.count;
  Value* weights = b.CreateAlignedLoad(v_.with_lanes(v_.storage_type(t), numbers),
                                       memory_.pointer(many, row, 0),
                                       memory_.alignment(many, row, 0));
  llvm::Type* wide = v_.with_lanes(together == 2 ? b.getInt16Ty() : b.getInt8Ty(), numbers);
  if (weights->getType() != wide)
    weights = t == DType::i8 ? b.CreateSExt(weights, wide) : b.CreateZExt(weights, wide);
  Value* all = b.CreateAlignedLoad(
      b.getInt32Ty(), memory_.pointer(one, number, 0),
      llvm::Align(static_cast<uint64_t>(dtype_bytes(kernel_.buffer(one).dtype))));
  all = b.CreateBitCast(v_.splat(all, lanes_.count), wide);
  if (together == 2) return b.CreateAdd(sum, b.CreateIntrinsic(instruction, {}, {weights, all}));
  return b.CreateIntrinsic(instruction, {}, {sum, all, weights});
}

}  // namespace tw::codegen
