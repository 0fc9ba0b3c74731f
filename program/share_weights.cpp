#include "program/share_weights.h"

#include <algorithm>
#include <cstring>

namespace tw {
namespace {

bool same(const WeightPiece& a, const WeightPiece& b) {
  if (a.size != b.size || a.source.bytes.size() != b.source.bytes.size() || !a.pack != !b.pack ||
      (a.pack && print(*a.pack) != print(*b.pack)))
    return false;
  return a.source.bytes.data() == b.source.bytes.data() ||
         std::memcmp(a.source.bytes.data(), b.source.bytes.data(), a.source.bytes.size()) == 0;
}

// From the offset of a piece in the other program to its offset in this one.
using Offsets = std::map<uint64_t, uint64_t>;

void move_operands(std::vector<KernelCall>& calls, const Offsets& offsets) {
  for (KernelCall& call : calls)
    for (Operand& operand : call.arguments) {
      if (operand.place != Place::weights) continue;
      const auto at = static_cast<uint64_t>(as_const(operand.offset).value_or(-1));
      const auto piece = offsets.upper_bound(at);  // an operand may begin inside of a piece
      TW_CHECK(piece != offsets.begin(), "a weight without a piece");
      const auto& [from, to] = *std::prev(piece);
      operand.offset = Expr(static_cast<int64_t>(to + (at - from)));
    }
}

}  // namespace

uint64_t share_weights(Program& program, Program& other) {
  TW_CHECK(program.devices.empty() && other.devices.empty(), "weights of devices are not shared");
  Offsets offsets;
  uint64_t shared = 0;
  const auto own = static_cast<std::ptrdiff_t>(program.weights.size());
  for (WeightPiece& piece : other.weights) {
    const auto end = program.weights.begin() + own;
    const auto found = std::find_if(program.weights.begin(), end,
                                    [&](const WeightPiece& p) { return same(p, piece); });
    const uint64_t there = piece.offset;
    if (found != end) {
      offsets[there] = found->offset;
      shared += piece.size;
      continue;
    }
    offsets[there] = piece.offset = (program.weight_bytes + 63) / 64 * 64;
    program.weight_bytes = piece.offset + (piece.size + 63) / 64 * 64;
    program.weights.push_back(std::move(piece));
  }
  other.weights.clear();
  move_operands(other.calls, offsets);
  for (Program& region : other.regions) move_operands(region.calls, offsets);
  return shared;
}

}  // namespace tw
