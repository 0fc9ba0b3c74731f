#include "kernels/schedule/tiles.h"

#include <algorithm>

#include "ir/schedule/tile_moves.h"
#include "ir/simplify.h"

namespace tw {
namespace {

std::optional<ProductForm> form_of(const Target& target, const SumInstruction& instruction) {
  const Intrinsic* intrinsic = target.find_intrinsic(instruction.intrinsic);
  return intrinsic ? product_form(*intrinsic) : std::nullopt;
}

class TileSums {
 public:
  TileSums(ScheduleBuilder& s, const Stage& stage, const SumInstruction& instruction)
      : s_(s), stage_(stage), instruction_(instruction) {
    const auto form = form_of(s.target(), instruction);
    const auto moves = form ? tile_moves(s.target(), *form) : std::nullopt;
    if (!moves) {
      s.fail("'" + instruction.intrinsic + "' has no operands in tiles");
      return;
    }
    moves_ = *moves;
    steps_of_tile_ = form->depth_count() / form->neighbours();
    read_operands(*form);
  }

  void run(const Loops& reduce, const Loops& tile, const Loop& row, const Loop& lane,
           const Loop& at) {
    const Loops own = s_.reduce_loops_of(stage_);  // the last two are the instruction's
    if (!s_.sound() || own.size() < 2 || reduce.empty()) return;
    const std::string& name = stage_.label();
    const Stage sums = s_.cache_write(stage_, name + "t", kTileScope);
    const Stage left = s_.cache_read(left_, sums, name + "l", kTileScope),
                right = s_.cache_read(right_, sums, name + "r", kTileScope);
    s_.compute_at(stage_, at);
    s_.compute_at(sums, at);
    const Loops block = {own[own.size() - 2], own.back()};
    const Loop summed = order(sums, reduce, s_.moved(sums, tile), s_.moved(sums, row),
                              s_.moved(sums, lane), block);
    const Loops copied = s_.moved(stage_, s_.cached(stage_, {row, lane}));
    const Loop stored = order(stage_, {}, s_.moved(stage_, s_.cached(stage_, tile)), copied[0],
                              copied[1], {});
    s_.decompose(sums, reduce.front());
    load(left, reduce.back(), instruction_.rows, moves_.load_left);
    load(right, reduce.back(), steps_of_tile_, moves_.load_right);
    s_.tensorize(summed, instruction_.intrinsic, sums.label() + "_block");
    s_.tensorize(s_.init_of(summed), moves_.zero, sums.label() + "_zero");
    s_.tensorize(stored, moves_.store, name + "_block");
    s_.unroll(unrolled_);
    s_.set_scope(stage_, "stack");
  }

 private:
  void read_operands(const ProductForm& form) {
    const StoreRef store = s_.store_of(stage_);
    if (!store) return s_.fail("there is no stage '" + stage_.label() + "' for an instruction");
    visit(store->value, [&](const Expr& e) {
      const auto* load = as<expr::Load>(e);
      if (!load) return;
      const BufferName buffer = s_.name_of(load->buffer);
      // The left one comes first, even if both have one type.
      const bool is_left = !left_.defined() && e->type == form.left_type;
      (is_left ? left_ : right_) = buffer;
    });
    if (!left_.defined() || !right_.defined() || left_ == right_)
      s_.fail("stage '" + stage_.label() + "' is no product of two operands");
  }

  ScheduleBuilder::Cut cut(const Loop& loop, int64_t by) {
    if (s_.extent(loop) == by) return {{}, loop};
    return s_.split_sums(loop, by, loop.name() + "b", loop.name() + "t");
  }

  // Orders a stage's loops over tiles of sums: those over tiles, which will be unrolled, then those
  // inside a tile. Returns the first loop inside a tile.
  Loop order(const Stage& stage, const Loops& outside, const Loops& tiles, const Loop& row,
             const Loop& lane, const Loops& inside) {
    s_.make_adjacent(stage, row, lane, instruction_);
    const ScheduleBuilder::Cut rows = cut(row, instruction_.rows),
                               lanes = cut(lane, instruction_.columns);
    Loops all = tiles;
    all.insert(all.end(), {rows.outer, lanes.outer});
    for (const Loop& loop : all) {
      unrolled_.push_back(loop);
      unrolled_.push_back(s_.init_of(loop));
    }
    all.insert(all.end(), {rows.inner, lanes.inner});
    Loops begun;
    for (const Loop& loop : all) begun.push_back(s_.init_of(loop));
    s_.reorder(begun);
    all.insert(all.begin(), outside.begin(), outside.end());
    all.insert(all.end(), inside.begin(), inside.end());
    s_.reorder(all);
    return rows.inner;
  }

  // Loads what one step of the sums reads, in tiles of `rows` rows; each tile is a block.
  void load(const Stage& operand, const Loop& step, int64_t rows, const std::string& intrinsic) {
    s_.compute_at(operand, step);
    const Loops all = s_.loops_of(operand);
    const auto found = std::ranges::find(all, step);
    if (found == all.end() || all.end() - found < 3)
      return s_.fail("a step of '" + operand.label() + "' is no matrix");
    unrolled_.insert(unrolled_.end(), found + 1, all.end() - 2);
    const ScheduleBuilder::Cut row = cut(*(all.end() - 2), rows);
    unrolled_.push_back(row.outer);
    s_.tensorize(row.inner, intrinsic, operand.label() + "_block");
  }

  ScheduleBuilder& s_;
  const Stage& stage_;
  const SumInstruction& instruction_;
  TileMoves moves_;
  int64_t steps_of_tile_ = 1;
  BufferName left_, right_;
  Loops unrolled_;
};

}  // namespace

bool in_tiles(const Target& target, const SumInstruction& instruction) {
  const auto form = instruction.defined() ? form_of(target, instruction) : std::nullopt;
  return form && form->in_tiles;
}

int64_t rows_of_tiles(const ScheduleBuilder& s, const SumInstruction& instruction,
                      const Loop& row) {
  return instruction.rows * (s.extent(row).value_or(0) % (2 * instruction.rows) == 0 ? 2 : 1);
}

void accumulate_tiles(ScheduleBuilder& s, const Stage& stage, const Loops& reduce,
                      const Loops& tile, const Loop& row, const Loop& lane,
                      const SumInstruction& instruction, const Loop& at) {
  TileSums(s, stage, instruction).run(reduce, tile, row, lane, at);
}

}  // namespace tw
