// Loads from a table of 256 bytes at indices in lanes of bytes. Instructions of the processor look
// the bytes up in registers where it has them; otherwise they go one by one.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <numeric>

#include "backends/llvm/memory_emitter.h"

namespace tw::codegen {
namespace {

constexpr int kEntries = 256;

// Looks up `lanes` bytes at a time in `registers` registers of as many entries, by the low bits of
// each index.
struct TableInstruction {
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  int lanes = 0, registers = 0;
  bool of_type = false;       // LLVM's name has the vectors' type
  bool place_second = false;  // the indices follow the first register, not the last
  int entries() const { return lanes * registers; }
};

TableInstruction instruction_for(TableLookup lookup) {
  switch (lookup) {
    case TableLookup::none: return {};
    case TableLookup::pshufb_128: return {llvm::Intrinsic::x86_ssse3_pshuf_b_128, 16, 1};
    case TableLookup::pshufb_256: return {llvm::Intrinsic::x86_avx2_pshuf_b, 32, 1};
    case TableLookup::vpermi2b:
      return {llvm::Intrinsic::x86_avx512_vpermi2var_qi_512, 64, 2, false, true};
    case TableLookup::tbl4: return {llvm::Intrinsic::aarch64_neon_tbl4, 16, 4, true};
  }
  TW_UNREACHABLE("bad table lookup");
}

// The lanes of bytes that the offsets are widened from, and their signedness
std::optional<std::pair<Value*, bool>> widened_bytes(Value* offsets) {
  using namespace llvm::PatternMatch;
  Value* x = offsets;
  Value* inner = nullptr;
  if (match(x, m_Mul(m_Value(inner), m_One()))) x = inner;
  const bool is_signed = match(x, m_SExt(m_Value(inner)));
  if (!is_signed && !match(x, m_ZExt(m_Value(inner)))) return std::nullopt;
  if (!inner->getType()->getScalarType()->isIntegerTy(8)) return std::nullopt;
  return std::pair(inner, is_signed);
}

}  // namespace

// Null: not a load from a table.
Value* MemoryEmitter::load_table(BufferId id, const Access& access, llvm::Type* type) {
  if (!access.lane_offsets || access.dynamic || !type->isIntegerTy(8) || elements(id) != kEntries)
    return nullptr;
  const auto bytes = widened_bytes(access.lane_offsets);
  if (!bytes || access.constant != (bytes->second ? kEntries / 2 : 0)) return nullptr;
  Access first = access;
  first.constant = 0, first.lane_offsets = nullptr;
  Value* table = pointer(id, first, 0);
  auto& b = v_.b;
  Value* places = bytes->first;
  if (bytes->second) places = b.CreateXor(places, v_.integer(places, kEntries / 2));
  const int count = lanes_.count, wide = instruction_for(v_.traits.table_lookup).lanes;
  if (wide == 0) return lanes_.mask ? nullptr : look_up_each(table, places);
  Value* found = llvm::PoisonValue::get(v_.with_lanes(type, count));
  for (int begin = 0; begin < count;) {
    int size = wide;
    while (size > count - begin) size /= 2;
    std::vector<int> lanes(static_cast<size_t>(wide), -1), all(static_cast<size_t>(size));
    std::iota(lanes.begin(), lanes.begin() + size, begin);
    std::iota(all.begin(), all.end(), 0);
    Value* piece = look_up(table, v_.shuffle(places, places, lanes));
    piece = v_.shuffle(piece, piece, all);
    found = size == count ? piece
                          : b.CreateInsertVector(found->getType(), found, piece,
                                                 static_cast<uint64_t>(begin));
    begin += size;
  }
  return found;
}

// Looks up as many indices as the instruction takes, in the parts of the table one after the other.
Value* MemoryEmitter::look_up(Value* table, Value* places) {
  auto& b = v_.b;
  const TableInstruction use = instruction_for(v_.traits.table_lookup);
  llvm::Type* part = places->getType();
  // A part of 16 entries serves each half of a register.
  const bool repeated = use.id == llvm::Intrinsic::x86_avx2_pshuf_b;
  const int entries = repeated ? 16 : use.entries();
  Value* low = b.CreateAnd(places, v_.integer(places, entries - 1));
  Value* found = nullptr;
  for (int at = 0; at < kEntries; at += entries) {
    std::vector<Value*> operands;
    for (int r = 0; r < use.registers; ++r) {
      llvm::Type* loaded = v_.with_lanes(b.getInt8Ty(), repeated ? 16 : use.lanes);
      Value* p = b.CreateGEP(b.getInt8Ty(), table, v_.i64(at + r * use.lanes));
      Value* entry = b.CreateAlignedLoad(loaded, p, llvm::Align(1));
      if (repeated) {
        std::vector<int> twice(32);
        for (int i = 0; i < 32; ++i) twice[static_cast<size_t>(i)] = i % 16;
        entry = v_.shuffle(entry, entry, twice);
      }
      operands.push_back(entry);
    }
    operands.insert(use.place_second ? operands.begin() + 1 : operands.end(), low);
    Value* here = use.of_type ? b.CreateIntrinsic(use.id, {part}, operands)
                              : b.CreateIntrinsic(use.id, {}, operands);
    found = found ? b.CreateSelect(b.CreateICmpUGE(places, v_.integer(places, at)), here, found)
                  : here;
  }
  return found;
}

Value* MemoryEmitter::look_up_each(Value* table, Value* places) {
  auto& b = v_.b;
  Value* found = llvm::PoisonValue::get(places->getType());
  for (int lane = 0; lane < Values::lanes(places); ++lane) {
    Value* place = b.CreateZExt(b.CreateExtractElement(places, static_cast<uint64_t>(lane)),
                                b.getInt64Ty());
    Value* entry = b.CreateAlignedLoad(b.getInt8Ty(), b.CreateGEP(b.getInt8Ty(), table, place),
                                       llvm::Align(1));
    found = b.CreateInsertElement(found, entry, static_cast<uint64_t>(lane));
  }
  return found;
}

}  // namespace tw::codegen
