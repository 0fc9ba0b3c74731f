// Schedules products whose operands a block's threads share (kernels/device/tiles.h). A block
// computes one tile of the output. For each part of the depth, its threads copy the tile's rows of
// xt and columns of w into their shared memory. Then each thread adds to its own sums. With an
// instruction, threads load their parts of its operands and add to their parts of the sums
// together. If the device copies by itself, the next part is in flight meanwhile.
#include <algorithm>
#include <map>

#include "ir/kernel/copies.h"
#include "ir/simplify.h"
#include "kernels/device/deal.h"
#include "kernels/device/device.h"
#include "kernels/device/tiles.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

constexpr int64_t kTotalThreads = 64;  // threads of a block that adds parts of sums
// Order of the tiles over the blocks: rows outermost, columns outermost, or groups of this many
// rows of tiles
constexpr int64_t kRowsFirst = 0, kColumnsFirst = 1;

class TiledSpace {
 public:
  TiledSpace(ScheduleBuilder& s, const TileStages& m)
      : s_(s), m_(m), target_(s.target()), right_(m.right) {
    for (const DeviceAxis& axis : target_.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread") axes_.push_back(axis.name);
    }
    type_ = s_.buffer(m.left.buffer()).dtype;
    operands_ = {type_, sums_tf32(s_.store_of(m.acc)->value)};
    copies_alone_ = copies_alone(target_);
    choose();
  }

  void run() {
    if (!s_.sound()) return;
    const std::string memory = block_memory(target_)->name;
    if (!right_.defined()) right_ = s_.cache_read(m_.weights, m_.acc, "wt", memory);
    if (instruction_) {
      left_operand_ = s_.cache_read(m_.left.buffer(), m_.acc, "xf", "stack");
      right_operand_ = s_.cache_read(right_.buffer(), m_.acc, "wf", "stack");
    }
    const Loops tiles = cut_output();
    s_.compute_at(m_.acc, tiles.back());
    const auto [parts, step] = s_.split(m_.depth, tile_.depth, Tail::guard, "k0", "k1");
    parts_ = parts, step_ = step;
    if (instruction_) tensor_sums();
    else sums();
    s_.compute_at(m_.left, parts_);
    s_.set_scope(m_.left, memory);
    s_.compute_at(right_, parts_);
    s_.set_scope(right_, memory);
    // Threads that execute an instruction together then read their parts of rows at once.
    if (instruction_) {
      keep_rows_apart(s_, m_.left.buffer(), instruction_->left.digits[1]);
      keep_rows_apart(s_, right_.buffer(), instruction_->right.digits[0]);
    }
    // Makes a thread's rows adjacent.
    if (!instruction_)
      map(m_.left, [](const Expr& r, const Expr& c) { return std::vector<Expr>{c, r}; });
    if (!s_.sound()) return;
    spread(m_.left, true);
    spread(right_, false);
    copy_ahead();
    if (!s_.sound()) return;
    if (instruction_) bind_tensor();
    else bind_sums();
    s_.bind(s_.fuse(tiles, "tile"), block_);
    if (m_.result.defined()) bind_total();
  }

 private:
  using Cut = ScheduleBuilder::Cut;

  void choose() {
    TileRoom room;
    room.operands = operands_;
    room.rows = s_.extent(m_.row), room.padded_rows = s_.extent(m_.acc_row);
    room.columns = s_.extent(m_.column).value_or(1);
    room.padded_columns = s_.extent(m_.acc_column).value_or(1);
    room.panel = as_const(s_.buffer(m_.weights).shape.back()).value_or(1);
    room.depth = s_.extent(m_.depth).value_or(0);
    columns_ = room.columns;
    const BlockTile& usual = m_.tile;
    std::vector<TileInstruction> all = tile_instructions(target_, operands_);
    if (!all.empty())
      instruction_ = std::move(all[static_cast<size_t>(s_.choose(
          "instruction", usual.instruction, counted(0, static_cast<int64_t>(all.size()) - 1)))]);
    tile_ = choose_tile(s_, usual, room, instruction_ ? &*instruction_ : nullptr);
    order_ = s_.choose("order", kRowsFirst, {kRowsFirst, kColumnsFirst, 2, 4, 8});
    stages_ = s_.choose("stages", usual.stages, {1, 2, 3, 4});
    const int64_t vector = std::max<int64_t>(1, target_.lanes(dtype_bytes(type_)));
    left_vector_ = s_.choose("vector_left", vector, {1, 2, 4, 8});
    right_vector_ = s_.choose("vector_right", vector, {1, 2, 4, 8});
  }

  Loop acc_row() const { return s_.moved(m_.acc, m_.acc_row); }
  Loop acc_column() const { return s_.moved(m_.acc, m_.acc_column); }

  // Cuts the output into tiles and returns the loops over tiles. The loops inside one are cut
  // later.
  Loops cut_output() {
    Loops tiles = m_.batches;
    Cut rows = s_.split(m_.row, tile_.rows, Tail::guard, "i0", "i1");
    const Cut columns = s_.split(m_.column, tile_.columns, Tail::guard, "j0", "j1");
    row_ = rows.inner, column_ = columns.inner;
    if (order_ == kRowsFirst) {
      tiles.insert(tiles.end(), {rows.outer, columns.outer});
    } else if (order_ == kColumnsFirst) {
      tiles.insert(tiles.end(), {columns.outer, rows.outer});
    } else {
      if (s_.extent(rows.outer).value_or(1) % order_ != 0)
        s_.fail("the rows of tiles are no whole groups");
      rows = s_.split(rows.outer, order_, Tail::guard, "i2", "i3");
      tiles.insert(tiles.end(), {rows.outer, columns.outer, rows.inner});
    }
    Loops order = tiles;
    order.insert(order.end(), {row_, column_});
    s_.reorder(order);
    return tiles;
  }

  // A side of the tile, dealt out to the threads: loops over groups, threads and elements
  struct Dealt {
    Loop group, thread, element;
  };
  Dealt deal(const Loop& loop, int64_t extent, int64_t part, int64_t groups,
             const std::string& thread, const std::string& element) {
    Dealt dealt;
    Loop rest = loop;
    if (groups > 1) {
      const Cut cut = s_.split(loop, extent / groups, Tail::guard, element + "g", element + "h");
      dealt.group = cut.outer, rest = cut.inner;
    }
    const Cut cut = s_.split(rest, part / groups, Tail::guard, thread, element);
    dealt.thread = cut.outer, dealt.element = cut.inner;
    return dealt;
  }
  static Loops present(const Loops& loops) {
    Loops there;
    for (const Loop& loop : loops)
      if (loop.defined()) there.push_back(loop);
    return there;
  }

  void sums() {
    const int64_t rows = tile_.thread_rows, lanes = tile_.lanes, across = tile_.columns / lanes;
    const auto deal_rows = [&](const Loop& loop, const std::string& of) {
      return deal(loop, tile_.rows, rows, tile_.row_groups, of + "t", of + "r");
    };
    const auto deal_columns = [&](const Loop& loop, const std::string& of) {
      return deal(loop, tile_.columns, lanes, tile_.column_groups, of + "w", of + "l");
    };
    const Dealt yr = deal_rows(row_, "y"), yc = deal_columns(column_, "y");
    s_.reorder(present({yr.thread, yc.thread, yr.group, yc.group, yr.element, yc.element}));
    const Dealt ar = deal_rows(acc_row(), "a"), ac = deal_columns(acc_column(), "a");
    s_.reorder(
        present({parts_, ar.thread, ac.thread, step_, ar.group, ac.group, ar.element, ac.element}));
    s_.decompose(m_.acc, parts_);
    s_.unroll_part(step_);
    for (const Loop& loop : present({ar.group, ac.group, ar.element}))
      s_.unroll(loop), s_.unroll(s_.init_of(loop));
    s_.vectorize(ac.element);
    s_.vectorize(s_.init_of(ac.element));
    s_.unroll(present({yr.group, yc.group, yr.element}));
    finish_lanes(yc.element, lanes / tile_.column_groups);
    map(m_.acc, [&](const Expr& r, const Expr& c) {  // each thread's own sums
      const Own row = own_of(r, tile_.rows, rows, tile_.row_groups),
                column = own_of(c, tile_.columns, lanes, tile_.column_groups);
      return std::vector<Expr>{row.thread * Expr(across) + column.thread, row.element,
                               column.element};
    });
    own_ = {{ar.thread, ac.thread},
            {s_.init_of(ar.thread), s_.init_of(ac.thread)},
            {yr.thread, yc.thread}};
  }

  // The thread that has an element of the tile's side, and the number of the element in that thread
  struct Own {
    Expr thread, element;
  };
  static Own own_of(const Expr& at, int64_t extent, int64_t part, int64_t groups) {
    const int64_t together = part / groups, height = extent / groups;
    if (groups == 1) return {floor_div(at, Expr(part)), floor_mod(at, Expr(part))};
    return {floor_div(floor_mod(at, Expr(height)), Expr(together)),
            floor_div(at, Expr(height)) * Expr(together) + floor_mod(at, Expr(together))};
  }

  void bind_sums() {
    for (const Cut& own : own_)
      threads_.push_back(s_.fuse({own.outer, own.inner}, own.outer.name() + "_thread"));
    for (const Loop& loop : threads_) s_.bind(loop, axes_[0]);
  }

  void finish_lanes(const Loop& loop, int64_t lanes) {
    if (columns_ % lanes == 0) s_.vectorize(loop);
    else s_.unroll(loop);
  }

  // Adds the parts of split sums in threads of other blocks.
  void bind_total() {
    const Cut cut = s_.split(s_.fuse(s_.loops_of(m_.result), "total"), kTotalThreads, Tail::guard,
                             "total_block", "total_thread");
    add_parts(s_, m_, cut.inner);
    s_.bind(cut.inner, axes_[0]);
    s_.bind(cut.outer, block_);
  }

  void tensor_sums() {
    const Cut group_row = s_.split(acc_row(), tile_.thread_rows, Tail::guard, "ag", "a1");
    const Cut row = s_.split(group_row.inner, instruction_->m, Tail::guard, "am", "ai");
    const Cut group_column = s_.split(acc_column(), tile_.lanes, Tail::guard, "ah", "ac");
    const Cut column = s_.split(group_column.inner, instruction_->n, Tail::guard, "an", "aj");
    const Cut depth = s_.split(step_, instruction_->k, Tail::guard, "ks", "kk");
    s_.reorder({parts_, group_row.outer, group_column.outer, depth.outer, row.outer, column.outer,
                row.inner, column.inner, depth.inner});
    s_.decompose(m_.acc, parts_);
    operand_step_ = depth.outer;
    s_.compute_at(left_operand_, operand_step_);
    s_.compute_at(right_operand_, operand_step_);
    map_operands();
    s_.tensorize(row.inner, instruction_->intrinsic->name, "product");
    group_ = {group_row.outer, group_column.outer};
    product_ = {row.outer, column.outer};
    element_ = {row.inner, column.inner};
  }

  // Arranges the sums and the operands in the order that the instruction needs.
  void map_operands() {
    const TileInstruction& by = *instruction_;
    const Expr m(by.m), n(by.n), rows(tile_.thread_rows), lanes(tile_.lanes);
    const auto append = [](std::vector<Expr> at, const std::vector<Expr>& more) {
      at.insert(at.end(), more.begin(), more.end());
      return at;
    };
    map(m_.acc, [&](const Expr& r, const Expr& c) {
      return append({floor_div(r, rows) * Expr(tile_.columns / tile_.lanes) + floor_div(c, lanes),
                     floor_div(floor_mod(r, rows), m), floor_div(floor_mod(c, lanes), n)},
                    placed(by, 2, floor_mod(r, m), floor_mod(c, n)));
    });
    place_operand(s_, by, left_operand_, FragmentOf::left);
    place_operand(s_, by, right_operand_, FragmentOf::right);
  }

  // Deals sums out to the threads that execute the instruction together.
  void deal_sums(const Loops& loops, const std::string& name, const Loops& outer, bool vector) {
    const OperandPlacement& sums = instruction_->sums;
    std::vector<Digits> digits;
    for (size_t a = 0; a < loops.size(); ++a)
      digits.push_back(
          in_groups(sums.digits[a], s_.extent(loops[a]).value_or(1) / sums.extents[a], 0));
    s_.bind(deal_nest(s_, loops, digits, tile_.together, name, outer, vector).lanes, axes_[0]);
  }

  void bind_tensor() {
    const TileInstruction& by = *instruction_;
    s_.bind(load_operand(s_, by, left_operand_, operand_step_, FragmentOf::left), axes_[0]);
    s_.bind(load_operand(s_, by, right_operand_, operand_step_, FragmentOf::right), axes_[0]);
    const Cut yr = s_.split(row_, tile_.thread_rows, Tail::guard, "yg", "y1");
    const Cut yc = s_.split(column_, tile_.lanes, Tail::guard, "yh", "y2");
    deal_sums({yr.inner, yc.inner}, "y", {yr.outer, yc.outer},
              columns_ % by.sums.digits[1].front().extent == 0);
    const auto init = [&](const Loop& loop) { return s_.init_of(loop); };
    const Loop tiles = s_.fuse({init(product_.outer), init(product_.inner)}, "tiles_init");
    deal_sums({init(element_.outer), init(element_.inner)}, "z",
              {init(group_.outer), init(group_.inner)}, false);
    s_.unroll({product_.outer, product_.inner, tiles});
    const Cut groups[] = {group_, {init(group_.outer), init(group_.inner)}, {yr.outer, yc.outer}};
    for (const Cut& g : groups)
      s_.bind(s_.fuse({g.outer, g.inner}, g.outer.name() + "_warp"), axes_[1]);
    for (const Loop& loop : threads_) {
      const Threads threads = in_groups_of(s_, loop, tile_.together);
      s_.bind(threads.lanes, axes_[0]);
      s_.bind(threads.groups, axes_[1]);
    }
  }

  // Moves element [.., row, column] to [first of to(row, column), .., the others of it].
  void map(const Stage& stage,
           const std::function<std::vector<Expr>(const Expr& row, const Expr& column)>& to) {
    s_.layout(stage.buffer(), [&](const std::vector<Expr>& at) {
      const std::vector<Expr> places = to(at[at.size() - 2], at.back());
      std::vector<Expr> all = {places[0]};
      all.insert(all.end(), at.begin(), at.end() - 2);
      all.insert(all.end(), places.begin() + 1, places.end());
      return all;
    });
  }

  // Lets the copies run ahead of the sums, asynchronously if the device copies by itself. With too
  // few parts of the depth, nothing runs ahead.
  void copy_ahead() {
    const int64_t parts = s_.extent(parts_).value_or(0),
                  bytes = s_.bytes_of(m_.left.buffer()).value_or(0) +
                          s_.bytes_of(right_.buffer()).value_or(0);
    if (stages_ == 1 || parts < stages_) return;
    if (bytes * stages_ > target_.local_bytes)
      return s_.fail("the ring of the copies does not fit the block's memory");
    for (const Stage& stage : {m_.left, right_})
      if (copies_alone_ && lands_alone(stage)) s_.async_copy(stage);
    s_.pipeline(parts_, stages_, {m_.left, right_});
    const size_t before = threads_.size();
    for (size_t i = 0; i < before; ++i) threads_.push_back(s_.prologue_of(threads_[i]));
  }

  // True: the device can make the stage's copies by itself. They have 4, 8 or 16 bytes and are
  // aligned to their size: single elements, or vectors of packed weights.
  bool lands_alone(const Stage& stage) const {
    const auto lanes = vectors_.find(stage.label());
    const int64_t bytes = (lanes == vectors_.end() ? 1 : lanes->second) * dtype_bytes(type_);
    return copied_load(s_.store_of(stage)->value).defined() &&
           (bytes == 4 || ((bytes == 8 || bytes == 16) && from_weights(stage)));
  }

  bool from_weights(const Stage& stage) const {
    const Expr from = copied_load(s_.store_of(stage)->value);
    return from.defined() &&
           s_.kernel().buffer(as<expr::Load>(from)->buffer).role == BufferRole::constant;
  }

  // Deals a stage's copies out to the threads. Each copies a vector if its elements are adjacent.
  // Otherwise neighbouring threads take neighbouring rows, which are adjacent in gathered windows.
  void spread(const Stage& stage, bool rows) {
    const bool alone = copies_alone_ && dtype_bytes(type_) == 4 && !from_weights(stage);
    CopyDeal deal{tile_.threads(), rows ? left_vector_ : right_vector_};
    if (alone) deal.vector = 1;  // single elements need no alignment
    deal.across = rows;
    const DealtCopies dealt = deal_copies(s_, stage, s_.loops_inside(stage, parts_), deal);
    if (dealt.vectors) vectors_[stage.label()] = deal.vector;
    threads_.push_back(dealt.thread);
  }

  ScheduleBuilder& s_;
  const TileStages& m_;
  const Target& target_;
  BlockTile tile_;
  std::optional<TileInstruction> instruction_;
  DType type_ = DType::f32;  // type of the operands
  TileOperands operands_;
  int64_t columns_ = 1, order_ = kRowsFirst, stages_ = 1;
  int64_t left_vector_ = 1, right_vector_ = 1;  // vector lengths of the copies
  bool copies_alone_ = false;                   // the device copies by itself
  std::string block_;
  Stage right_;                         // stage that copies the right operand
  Stage left_operand_, right_operand_;  // stages that load the instruction's operands
  std::vector<std::string> axes_;
  Loops threads_;                           // loops to bind to threads
  std::map<std::string, int64_t> vectors_;  // elements that a copying stage moves at once
  Loop parts_, step_, operand_step_;        // loops over the depth
  Loop row_, column_;
  std::vector<Cut> own_;  // loops over the threads' own sums, rows and columns
  // Sums with an instruction: groups of threads, products, elements
  Cut group_, product_, element_;
};

}  // namespace

bool side_by_side(const ScheduleBuilder& s, const Stage& stage, const Loop& loop, int64_t lanes) {
  const std::string vector = loop.name() + ".v", lane = loop.name() + ".l";
  Ranges ranges;
  visit(s.kernel().body, [&](const Stmt& n) {
    if (const auto* around = as<stmt::Loop>(n))
      ranges[around->var] = {Expr(0), around->extent - Expr(1)};
  });
  ranges[vector] = {Expr(0), Expr(s.extent(loop).value_or(1) / lanes - 1)};
  ranges[lane] = {Expr(0), Expr(lanes - 1)};
  if (s.extent(loop).value_or(1) % lanes != 0) return false;
  bool good = true;
  const auto placed = [&](const Expr& e) {
    return simplify(substitute(e, loop.name(), var(vector) * Expr(lanes) + var(lane)), ranges);
  };
  visit(s.store_of(stage)->value, [&](const Expr& e) {
    if (const auto* select = as<expr::Select>(e))
      good &= !uses_var(placed(select->condition), lane);
    const auto* load = as<expr::Load>(e);
    if (!load) return;
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const Expr at = placed(load->indices[d]),
                 rest = d + 1 == load->indices.size() ? simplify(at - var(lane), ranges) : at;
      good &= !uses_var(rest, lane);
    }
  });
  return good;
}

void add_parts(ScheduleBuilder& s, const TileStages& m, const Loop& thread) {
  if (!m.total.defined()) return;
  s.compute_at(m.total, thread);
  s.set_scope(m.total, "stack");
  s.unroll(s.loops_inside(m.total, thread));
}

void schedule_tiles(ScheduleBuilder& s, const TileStages& m) { TiledSpace(s, m).run(); }

}  // namespace tw
