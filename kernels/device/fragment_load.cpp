#include "kernels/device/fragment_load.h"

#include <algorithm>
#include <array>

#include "ir/schedule/intrinsic.h"

namespace tw {
namespace {

using Loop3 = std::array<std::pair<std::string, int64_t>, 3>;

// The loops over matrices, rows and columns of a kernel that copies x [thread, element] to y of the
// same form; nullopt: it is no such copy.
std::optional<Loop3> loops_of_copy(const Kernel& semantics, DType type) {
  if (semantics.buffers.size() != 2) return std::nullopt;
  for (const Buffer& parameter : semantics.buffers)
    if (parameter.dtype != type || parameter.shape.size() != 2) return std::nullopt;
  Loop3 loops;
  Stmt s = semantics.body;
  for (auto& [name, extent] : loops) {
    const auto* loop = as<stmt::Loop>(s);
    if (!loop) return std::nullopt;
    name = loop->var, extent = as_const(loop->extent).value_or(0);
    s = loop->body;
  }
  const auto* store = as<stmt::Store>(s);
  const bool copies = store && store->combiner == Combiner::none && is<expr::Load>(store->value);
  return copies ? std::optional(loops) : std::nullopt;
}

// The axes of an operand in memory order: rows, then columns
struct Axes {
  std::string row, column;
  int64_t rows, columns;
};

bool leaves_elements(const Kernel& copy, const Loop3& loops, const Kernel& product, int32_t operand,
                     const Axes& axes) {
  const auto [matrices, rows, columns] = std::array{loops[0].second, loops[1].second,
                                                    loops[2].second};
  if (rows < 1 || columns < 1 || axes.rows % rows != 0 || axes.columns % columns != 0 ||
      axes.rows / rows * (axes.columns / columns) != matrices)
    return false;
  const std::vector<Expr> given = indices_of(copy, BufferId{1}),
                          wanted = indices_of(product, BufferId{operand});
  const int64_t below = axes.rows / rows;
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        for (size_t d = 0; d < 2; ++d) {
          const int64_t has = eval_int(given[d], [&](std::string_view name) {
            return name == loops[0].first ? m : name == loops[1].first ? i : j;
          });
          const int64_t wants = eval_int(wanted[d], [&](std::string_view name) {
            return name == axes.row ? m % below * rows + i : m / below * columns + j;
          });
          if (has != wants) return false;
        }
  return true;
}

}  // namespace

static Axes fragment_axes(const TileInstruction& by, FragmentOf operand) {
  switch (operand) {
    case FragmentOf::left: return {by.row, by.depth, by.m, by.k};
    case FragmentOf::right: return {by.depth, by.column, by.k, by.n};
    case FragmentOf::turned_right: return {by.column, by.depth, by.n, by.k};
  }
  TW_UNREACHABLE("an operand");
}

std::optional<FragmentLoad> fragment_load(const Target& target, const TileInstruction& instruction,
                                          FragmentOf which) {
  const int32_t operand = which == FragmentOf::left ? 0 : 1;
  const Kernel& product = *instruction.semantics;
  if (product.buffer(BufferId{operand}).shape.size() != 2) return std::nullopt;
  const Axes axes = fragment_axes(instruction, which);
  for (const Intrinsic& intrinsic : target.intrinsics) {
    if (intrinsic.emit.threads != instruction.together) continue;
    Expected<std::shared_ptr<const Kernel>> copy = semantics_of(intrinsic);
    if (!copy) {
      llvm::consumeError(copy.takeError());
      continue;
    }
    const auto loops = loops_of_copy(**copy, product.buffer(BufferId{operand}).dtype);
    if (loops && leaves_elements(**copy, *loops, product, operand, axes))
      return FragmentLoad{&intrinsic, (*loops)[0].second, axes.rows / (*loops)[1].second,
                          (*loops)[1].second, (*loops)[2].second};
  }
  return std::nullopt;
}

}  // namespace tw
