#include "program/fast_paths.h"

#include <algorithm>
#include <cstring>

namespace tw {
namespace {

Error check(const Program& program, const std::map<std::string, int64_t>& sizes) {
  for (const auto& [symbol, size] : sizes) {
    if (!std::ranges::count(program.symbols, symbol)) {
      Diag diag{DiagCode::invalid_argument,
                llvm::formatv("--specialize: the model has no free dimension '{0}'", symbol).str(),
                {},
                {}};
      for (const std::string& name : program.symbols)
        diag.notes.push_back("there is " + interface_name(name));
      return make_error(std::move(diag));
    }
    const SymbolLimits range = limits_of(program.limits, symbol);
    if (size < range.least || size > range.most)
      return make_error(DiagCode::invalid_argument,
                        "--specialize {0}={1}: the dimension is {2} to {3}", interface_name(symbol),
                        size, range.least, range.most);
  }
  const char* reason = !program.data_symbols.empty() || program.growable_buffers > 0
                           ? "sizes made from data"
                       : !program.regions.empty() ? "an If or Loop that is decided while running"
                       : !program.devices.empty() ? "a device beside the processor"
                                                  : nullptr;
  return reason ? make_error(DiagCode::unsupported, "--specialize: not for models with {0}", reason)
                : Error::success();
}

bool same(const WeightPiece& a, const WeightPiece& b) {
  if (a.size != b.size || a.source.bytes.size() != b.source.bytes.size() || !a.pack != !b.pack ||
      (a.pack && print(*a.pack) != print(*b.pack)))
    return false;
  return a.source.bytes.data() == b.source.bytes.data() ||
         std::memcmp(a.source.bytes.data(), b.source.bytes.data(), a.source.bytes.size()) == 0;
}

// Of each piece of `special`, by its offset there, the offset in `program`.
std::map<uint64_t, uint64_t> add_weights(Program& program, const Program& special) {
  std::map<uint64_t, uint64_t> offsets;
  const size_t own = program.weights.size();
  for (WeightPiece piece : special.weights) {
    const auto end = program.weights.begin() + static_cast<std::ptrdiff_t>(own);
    const auto found = std::find_if(program.weights.begin(), end,
                                    [&](const WeightPiece& p) { return same(p, piece); });
    const uint64_t there = piece.offset;
    if (found != end) {
      offsets[there] = found->offset;
      continue;
    }
    offsets[there] = piece.offset = (program.weight_bytes + 63) / 64 * 64;
    program.weight_bytes = piece.offset + (piece.size + 63) / 64 * 64;
    program.weights.push_back(std::move(piece));
  }
  return offsets;
}

std::vector<int> add_kernels(Program& program, const Program& special) {
  std::map<std::string, int> known;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    known.emplace(kernel_hash(program.kernels[k]), static_cast<int>(k));
  std::vector<int> numbers;
  for (size_t k = 0; k < special.kernels.size(); ++k) {
    const auto [at, fresh] = known.emplace(kernel_hash(special.kernels[k]),
                                           static_cast<int>(program.kernels.size()));
    numbers.push_back(at->second);
    if (!fresh) continue;
    program.kernels.push_back(special.kernels[k]);
    program.work.push_back(special.work[k]);
  }
  return numbers;
}

}  // namespace

Expected<std::vector<int>> add_fast_path(Program& program, const Program& special,
                                         const std::map<std::string, int64_t>& sizes) {
  TW_TRY(check(program, sizes));
  TW_TRY(check(special, {}));
  TW_CHECK(program.inputs.size() == special.inputs.size() &&
               program.outputs.size() == special.outputs.size(),
           "a fast path of another model");
  std::vector<int> numbers = add_kernels(program, special);
  const std::map<uint64_t, uint64_t> offsets = add_weights(program, special);
  FastPath path{sizes, program.calls.size(), 0};
  for (KernelCall call : special.calls) {
    if (!call.function) call.kernel = numbers[static_cast<size_t>(call.kernel)];
    for (Operand& operand : call.arguments) {
      if (operand.place != Place::weights) continue;
      const auto at = static_cast<uint64_t>(as_const(operand.offset).value_or(-1));
      const auto piece = offsets.upper_bound(at);  // an operand may begin inside of a piece
      TW_CHECK(piece != offsets.begin(), "a weight without a piece");
      const auto& [from, to] = *std::prev(piece);
      operand.offset = Expr(static_cast<int64_t>(to + (at - from)));
    }
    program.calls.push_back(std::move(call));
  }
  path.end = program.calls.size();
  for (SizeStep step : special.steps) {
    step.before += path.begin;
    program.steps.push_back(std::move(step));
  }
  Expr fits;
  for (const auto& [symbol, size] : sizes) fits = logical_and(fits, eq(var(symbol), size));
  program.arena_bytes = select(fits, special.arena_bytes, program.arena_bytes);
  if (program.max_arena_bytes.defined())
    program.max_arena_bytes = simplify(
        max(program.max_arena_bytes,
            special.max_arena_bytes.defined() ? special.max_arena_bytes : special.arena_bytes));
  program.fast_paths.push_back(std::move(path));
  return numbers;
}

}  // namespace tw
