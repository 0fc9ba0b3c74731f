// i32(x[k]) * i32(w[2 * lane + k]) + i32(x[k + 1]) * i32(w[2 * lane + k + 1]), where x is of 16 bits and w of 8 or 16: x's two numbers are one load of 32 bits
// for all lanes, w's a whole vector, and one instruction multiplies and adds neighbours. LLVM joins the sum that follows where the processor
// does that too (AVX512-VNNI).
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "backends/llvm/kernel_emitter.h"

namespace tw {
namespace {

// What i32(load) reads; null: it is something else.
const ExprNode* narrow_load(const Expr& e) {
  if (e->kind != ExprKind::cast || e->type != DType::i32 || e->args[0]->kind != ExprKind::load) return nullptr;
  const DType t = e->args[0].type();
  return t == DType::i8 || t == DType::u8 || t == DType::i16 ? e->args[0].get() : nullptr;
}

// b is the element behind a.
bool adjacent(const IndexForm& a, const IndexForm& b) {
  if (b.constant != a.constant + 1 || a.terms.size() != b.terms.size()) return false;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const IndexTerm &s = a.terms[i], &t = b.terms[i];
    if (s.coefficient != t.coefficient || s.factors.size() != t.factors.size()) return false;
    for (size_t f = 0; f < s.factors.size(); ++f)
      if (!equal(s.factors[f], t.factors[f])) return false;
  }
  return true;
}

llvm::Intrinsic::ID multiply_pairs(int lanes) {
  switch (lanes) {
    case 4: return llvm::Intrinsic::x86_sse2_pmadd_wd;
    case 8: return llvm::Intrinsic::x86_avx2_pmadd_wd;
    case 16: return llvm::Intrinsic::x86_avx512_pmaddw_d_512;
    default: return llvm::Intrinsic::not_intrinsic;
  }
}

}  // namespace

Value* KernelEmitter::emit_pair(const Expr& x, const Expr& y) {
  const llvm::Intrinsic::ID instruction = multiply_pairs(lane_count_);
  if (mask_ || instruction == llvm::Intrinsic::not_intrinsic || lane_count_ * 32 > v_.traits.pair_bits) return nullptr;
  const ExprNode* loads[2][2] = {};   // of x and y: the factor of one number for all lanes, the factor of a number a lane
  for (int p = 0; p < 2; ++p) {
    const Expr& product = p == 0 ? x : y;
    if (product->kind != ExprKind::binary || product->binary != BinaryOp::mul) return nullptr;
    for (const Expr& factor : product->args) {
      const ExprNode* read = narrow_load(factor);
      if (!read || kernel_.buffer(read->buffer).scope == "register") return nullptr;
      const IndexForm& form = form_of(read, read->buffer, read->args);
      const bool by_lane = std::ranges::any_of(form.terms, [&](const IndexTerm& t) {
        return std::ranges::any_of(t.factors, [&](const Expr& f) { return uses_var(f, lane_var_); });
      });
      loads[p][by_lane] = read;
    }
    if (!loads[p][0] || !loads[p][1]) return nullptr;
  }
  for (int i = 0; i < 2; ++i)
    if (loads[0][i]->buffer != loads[1][i]->buffer ||
        !adjacent(form_of(loads[0][i], loads[0][i]->buffer, loads[0][i]->args), form_of(loads[1][i], loads[1][i]->buffer, loads[1][i]->args))) return nullptr;
  const BufferId one = loads[0][0]->buffer, many = loads[0][1]->buffer;
  if (kernel_.buffer(one).dtype != DType::i16) return nullptr;
  const Access number = access_of(form_of(loads[0][0], one, loads[0][0]->args)), row = access_of(form_of(loads[0][1], many, loads[0][1]->args));
  if (number.lane_offsets || number.lane_stride != 0 || row.lane_offsets || row.lane_stride != 2) return nullptr;
  auto& b = v_.b;
  const DType t = kernel_.buffer(many).dtype;
  llvm::Type* shorts = v_.with_lanes(b.getInt16Ty(), 2 * lane_count_);
  Value* weights = b.CreateAlignedLoad(v_.with_lanes(v_.storage_type(t), 2 * lane_count_), pointer(many, row, 0), alignment(many, row, 0));
  if (t != DType::i16) weights = t == DType::i8 ? b.CreateSExt(weights, shorts) : b.CreateZExt(weights, shorts);
  Value* both = b.CreateAlignedLoad(b.getInt32Ty(), pointer(one, number, 0), llvm::Align(2));
  return b.CreateIntrinsic(instruction, {}, {weights, b.CreateBitCast(v_.splat(both, lane_count_), shorts)});
}

}  // namespace tw
