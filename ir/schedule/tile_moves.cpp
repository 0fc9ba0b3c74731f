#include "ir/schedule/tile_moves.h"

#include "ir/schedule/intrinsic.h"

namespace tw {
namespace {

// The matrix in a tile: rows of elements
struct Matrix {
  DType type = DType::f32;
  int64_t rows = 1, columns = 1;
};

bool is_matrix(const Buffer& buffer, const Matrix& m) {
  return buffer.dtype == m.type && buffer.shape.size() == 2 && is_const(buffer.shape[0], m.rows) &&
         is_const(buffer.shape[1], m.columns);
}

// The value that the kernel stores to every element of a matrix; undefined: it is not a plain store
// over one.
Expr element_of(const Kernel& kernel, const Matrix& m) {
  const auto* row = as<stmt::Loop>(kernel.body);
  const auto* column = row ? as<stmt::Loop>(row->body) : nullptr;
  const auto* store = column ? as<stmt::Store>(column->body) : nullptr;
  const auto counts = [](const stmt::Loop& loop, const Expr& index, int64_t extent) {
    return is_var(index, loop.var) && is_const(loop.extent, extent);
  };
  const auto dense = [&](const std::vector<Expr>& at) {
    return at.size() == 2 && counts(*row, at[0], m.rows) && counts(*column, at[1], m.columns);
  };
  if (!store || store->combiner != Combiner::none || !dense(store->indices) ||
      !is_matrix(kernel.buffer(store->buffer), m))
    return {};
  const auto* load = as<expr::Load>(store->value);
  if (load && !(dense(load->indices) && is_matrix(kernel.buffer(load->buffer), m))) return {};
  return store->value;
}

bool is_zero(const Expr& e) {
  const auto* number = as<expr::Float>(e);
  return is_const(e, 0) || (number && number->value == 0);
}

enum class Move : uint8_t { load, zero, store };

bool does(const Intrinsic& intrinsic, Move move, const Matrix& m) {
  Expected<std::shared_ptr<const Kernel>> semantics = semantics_of(intrinsic);
  if (!semantics) {
    llvm::consumeError(semantics.takeError());
    return false;
  }
  const Kernel& kernel = **semantics;
  const Expr value = element_of(kernel, m);
  if (!value.defined()) return false;
  // All operands of a role are in tiles, or none is.
  const auto lie = [&](BufferRole role, bool in_tiles) {
    for (size_t i = 0; i < kernel.buffers.size() && i < intrinsic.scopes.size(); ++i)
      if (kernel.buffers[i].role == role && (intrinsic.scopes[i] == kTileScope) != in_tiles)
        return false;
    return intrinsic.scopes.size() == kernel.buffers.size();
  };
  switch (move) {
    case Move::load:
      return is<expr::Load>(value) && lie(BufferRole::input, false) &&
             lie(BufferRole::output, true);
    case Move::zero: return is_zero(value) && lie(BufferRole::output, true);
    case Move::store:
      return is<expr::Load>(value) && lie(BufferRole::input, true) &&
             lie(BufferRole::output, false);
  }
  TW_UNREACHABLE("a move of tiles");
}

// Name of the instruction; empty: the target has none.
std::string move_of(const Target& target, Move move, const Matrix& m) {
  for (const Intrinsic& intrinsic : target.intrinsics)
    if (does(intrinsic, move, m)) return intrinsic.name;
  return {};
}

}  // namespace

std::optional<TileMoves> tile_moves(const Target& target, const ProductForm& form) {
  if (!form.in_tiles || !form.dense()) return std::nullopt;
  const Matrix left{form.left_type, form.row_count(), form.depth_count()},
      right{form.right_type, form.depth_count() / form.neighbours(),
            form.column_count() * form.neighbours()},
      sums{form.sum_type, form.row_count(), form.column_count()};
  TileMoves moves{move_of(target, Move::load, left), move_of(target, Move::load, right),
                  move_of(target, Move::zero, sums), move_of(target, Move::store, sums)};
  for (const std::string& name : {moves.load_left, moves.load_right, moves.zero, moves.store})
    if (name.empty()) return std::nullopt;
  return moves;
}

}  // namespace tw
