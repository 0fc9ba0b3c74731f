// Products whose operands a block's threads share (kernels/device/tiles.h). A block makes one tile
// of the output: for each part of the depth its threads copy the tile's rows of xt and columns of w
// side by side into the memory they share, then each adds to its own sums; or those that do an
// instruction together take their parts of its operands and add to their parts of the sums. Where
// the device copies on its own, what comes next is on its way meanwhile.
#include <algorithm>
#include <map>

#include "ir/kernel/copies.h"
#include "ir/schedule/intrinsic.h"
#include "ir/simplify.h"
#include "kernels/device/device.h"
#include "kernels/device/tiles.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

constexpr int64_t kStages = 3;  // of a pipeline of copies

class TiledSpace {
 public:
  TiledSpace(const Kernel& kernel, const TileStages& m, const Target& target)
      : s_(kernel, target), m_(m), target_(target), right_(m.right) {
    for (const DeviceAxis& axis : target.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread") axes_.push_back(axis.name);
    }
    type_ = s_.buffer(m.left.buffer()).dtype;
    const std::optional<BlockTile> tile = block_tile(target, type_, s_.extent(m.row),
                                                     s_.extent(m.column).value_or(0),
                                                     s_.extent(m.depth).value_or(0));
    TW_CHECK(tile, "a kernel in tiles for a target that has none");
    tile_ = *tile;
    copies_alone_ = std::ranges::any_of(target.intrinsics,
                                        [](const Intrinsic& i) { return i.emit == "async"; });
    vector_ = std::max<int64_t>(1, target.lanes(dtype_bytes(type_)));
  }

  Expected<Schedule> run() {
    const std::string memory = block_memory(target_)->name;
    if (!right_.defined()) right_ = s_.cache_read(m_.weights, m_.acc, "wt", memory);
    if (tile_.instruction) {
      left_operand_ = s_.cache_read(m_.left.buffer(), m_.acc, "xf", "stack");
      right_operand_ = s_.cache_read(right_.buffer(), m_.acc, "wf", "stack");
    }
    const Loops tiles = cut_output();
    s_.compute_at(m_.acc, tiles.back());
    const auto [parts, step] = s_.split(m_.depth, tile_.depth, Tail::guard, "k0", "k1");
    parts_ = parts, step_ = step;
    if (tile_.instruction) tensor_sums();
    else sums();
    s_.compute_at(m_.left, parts_);
    s_.set_scope(m_.left, memory);
    s_.compute_at(right_, parts_);
    s_.set_scope(right_, memory);
    // A thread's rows side by side
    if (!tile_.instruction)
      map(m_.left, [](const Expr& r, const Expr& c) { return std::vector<Expr>{c, r}; });
    spread(m_.left, true);
    spread(right_, false);
    copy_ahead();
    if (tile_.instruction) bind_tensor();
    else bind_sums();
    s_.bind(s_.fuse(tiles, "tile"), block_);
    return s_.finish();
  }

 private:
  using Cut = ScheduleBuilder::Cut;

  Loop acc_row() const { return s_.moved(m_.acc, m_.acc_row); }
  Loop acc_column() const { return s_.moved(m_.acc, m_.acc_column); }

  // The result: the loops over tiles. What is inside of one comes later.
  Loops cut_output() {
    Loops tiles = m_.batches;
    columns_ = s_.extent(m_.column).value_or(1);
    const Cut rows = s_.split(m_.row, tile_.rows, Tail::guard, "i0", "i1");
    const Cut columns = s_.split(m_.column, tile_.columns, Tail::guard, "j0", "j1");
    tiles.insert(tiles.end(), {rows.outer, columns.outer});
    row_ = rows.inner, column_ = columns.inner;
    Loops order = tiles;
    order.insert(order.end(), {row_, column_});
    s_.reorder(order);
    return tiles;
  }

  void sums() {
    const Cut yr = s_.split(row_, tile_.thread_rows, Tail::guard, "yt", "yr");
    const Cut yc = s_.split(column_, tile_.lanes, Tail::guard, "yw", "yl");
    s_.reorder({yr.outer, yc.outer, yr.inner, yc.inner});
    const Cut ar = s_.split(acc_row(), tile_.thread_rows, Tail::guard, "at", "ar");
    const Cut ac = s_.split(acc_column(), tile_.lanes, Tail::guard, "aw", "al");
    s_.reorder({parts_, ar.outer, ac.outer, step_, ar.inner, ac.inner});
    s_.decompose(m_.acc, parts_);
    s_.unroll(ar.inner);
    s_.vectorize(ac.inner);
    s_.unroll(s_.init_of(ar.inner));
    s_.vectorize(s_.init_of(ac.inner));
    s_.unroll(yr.inner);
    finish_lanes(yc.inner, tile_.lanes);
    const int64_t across = tile_.columns / tile_.lanes;
    map(m_.acc, [&](const Expr& r, const Expr& c) {  // each thread's own
      return std::vector<Expr>{
          floor_div(r, Expr(tile_.thread_rows)) * Expr(across) + floor_div(c, Expr(tile_.lanes)),
          floor_mod(r, Expr(tile_.thread_rows)), floor_mod(c, Expr(tile_.lanes))};
    });
    own_ = {
        {ar.outer, ac.outer}, {s_.init_of(ar.outer), s_.init_of(ac.outer)}, {yr.outer, yc.outer}};
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

  // The instruction's operands as its semantics place them: [.., which of them, thread, element].
  std::vector<Expr> placed(size_t parameter, const Expr& row, const Expr& column,
                           const std::string& row_loop, const std::string& column_loop) const {
    const Kernel semantics = *parse_kernel(tile_.instruction->semantics);
    std::vector<Expr> found;
    const BufferId wanted{static_cast<int32_t>(parameter)};
    const Stmt store = stores_of(semantics.body).front();
    if (store->buffer == wanted) found = store->indices;
    visit(store->value, [&](const Expr& e) {
      if (e->kind == ExprKind::load && e->buffer == wanted) found = e->args;
    });
    for (Expr& e : found) e = substitute(substitute(e, row_loop, row), column_loop, column);
    return found;
  }

  void tensor_sums() {
    const int64_t m = tile_.m, n = tile_.n, part = tile_.thread_rows;
    const Cut group_row = s_.split(acc_row(), part, Tail::guard, "ag", "a1");
    const Cut row = s_.split(group_row.inner, m, Tail::guard, "am", "ai");
    const Cut group_column = s_.split(acc_column(), part, Tail::guard, "ah", "b1");
    const Cut column = s_.split(group_column.inner, n, Tail::guard, "an", "aj");
    const Cut depth = s_.split(step_, tile_.k, Tail::guard, "ks", "kk");
    s_.reorder({parts_, group_row.outer, group_column.outer, depth.outer, row.outer, column.outer,
                row.inner, column.inner, depth.inner});
    s_.decompose(m_.acc, parts_);
    operand_step_ = depth.outer;
    s_.compute_at(left_operand_, operand_step_);
    s_.compute_at(right_operand_, operand_step_);
    map_operands();
    s_.tensorize(row.inner, tile_.instruction->name, "product");
    group_ = {group_row.outer, group_column.outer};
    product_ = {row.outer, column.outer};
    element_ = {row.inner, column.inner};
  }

  // The sums and the operands in the places that the instruction gives them.
  void map_operands() {
    std::vector<std::string> loops;  // of the instruction, outermost first
    const Kernel semantics = *parse_kernel(tile_.instruction->semantics);
    for (Stmt s = semantics.body; s->kind == StmtKind::loop; s = s->body[0])
      loops.push_back(s->var);
    const std::string &i = loops[0], &j = loops[1], &k = loops[2];
    const int64_t m = tile_.m, n = tile_.n, part = tile_.thread_rows, across = tile_.columns / part;
    map(m_.acc, [&](const Expr& r, const Expr& c) {
      std::vector<Expr> at = {floor_div(r, Expr(part)) * Expr(across) + floor_div(c, Expr(part)),
                              floor_div(floor_mod(r, Expr(part)), Expr(m)),
                              floor_div(floor_mod(c, Expr(part)), Expr(n))};
      for (const Expr& e : placed(2, floor_mod(r, Expr(m)), floor_mod(c, Expr(n)), i, j))
        at.push_back(e);
      return at;
    });
    map(left_operand_, [&](const Expr& r, const Expr& c) {
      std::vector<Expr> at = {floor_div(r, Expr(m))};
      for (const Expr& e : placed(0, floor_mod(r, Expr(m)), c, i, k)) at.push_back(e);
      return at;
    });
    map(right_operand_, [&](const Expr& r, const Expr& c) {
      std::vector<Expr> at = {floor_div(c, Expr(n))};
      for (const Expr& e : placed(1, r, floor_mod(c, Expr(n)), k, j)) at.push_back(e);
      return at;
    });
  }

  // Threads hold pairs of neighbours: 8 rows (columns, of the right operand) by 4 pairs along the
  // other side.
  void pairs(const Loop& rows, const Loop& columns, const std::string& name, const Loops& outer,
             bool vector) {
    const Cut row = s_.split(rows, 8, Tail::guard, name + "R", name + "r");
    const Cut column = s_.split(columns, 8, Tail::guard, name + "C", name + "c");
    const Cut pair = s_.split(column.inner, 2, Tail::guard, name + "p", name + "e");
    Loops order = outer;
    order.insert(order.end(), {row.inner, pair.outer, row.outer, column.outer, pair.inner});
    s_.reorder(order);
    s_.unroll({row.outer, column.outer});
    if (vector) s_.vectorize(pair.inner);
    else s_.unroll(pair.inner);
    s_.bind(s_.fuse({row.inner, pair.outer}, name + "_lane"), axes_[0]);
  }

  void bind_tensor() {
    const Loops x = own_loops(left_operand_, operand_step_),
                w = own_loops(right_operand_, operand_step_);
    const int64_t part = tile_.thread_rows;
    pairs(x[0], x[1], left_operand_.label(), {}, true);
    pairs(w[1], w[0], right_operand_.label(), {}, false);
    const Cut yr = s_.split(row_, part, Tail::guard, "yg", "y1");
    const Cut yc = s_.split(column_, part, Tail::guard, "yh", "y2");
    pairs(yr.inner, yc.inner, "y", {yr.outer, yc.outer}, columns_ % 2 == 0);
    const auto init = [&](const Loop& loop) { return s_.init_of(loop); };
    const Loop tiles = s_.fuse({init(product_.outer), init(product_.inner)}, "tiles_init");
    pairs(init(element_.outer), init(element_.inner), "z", {init(group_.outer), init(group_.inner)},
          false);
    s_.unroll({product_.outer, product_.inner, tiles});
    const Cut groups[] = {group_, {init(group_.outer), init(group_.inner)}, {yr.outer, yc.outer}};
    for (const Cut& g : groups)
      s_.bind(s_.fuse({g.outer, g.inner}, g.outer.name() + "_warp"), axes_[1]);
    for (const Loop& loop : threads_) {
      const Cut lanes = s_.split(loop, tile_.together, Tail::guard, loop.name() + "_warp",
                                 loop.name() + "_lane");
      s_.bind(lanes.inner, axes_[0]);
      s_.bind(lanes.outer, axes_[1]);
    }
  }

  // Element [.., row, column] moves to [mapped.. (the first), .., mapped.. (the others)].
  void map(const Stage& stage,
           const std::function<std::vector<Expr>(const Expr& row, const Expr& column)>& to) {
    std::vector<std::string> dims;
    for (size_t d = 0; d < s_.buffer(stage.buffer()).shape.size(); ++d)
      dims.push_back("d" + std::to_string(d));
    const std::vector<Expr> places = to(var(dims[dims.size() - 2]), var(dims.back()));
    std::vector<Expr> all = {places[0]};
    for (size_t d = 0; d + 2 < dims.size(); ++d) all.push_back(var(dims[d]));
    all.insert(all.end(), places.begin() + 1, places.end());
    s_.layout(stage.buffer(), dims, all);
  }

  Loops own_loops(const Stage& stage, const Loop& at) const {
    Loops own = s_.loops_of(stage);
    own.erase(own.begin(), std::ranges::find(own, at) + 1);
    return own;
  }

  // Copies that the device makes on its own, and stages that only copy, run ahead of the sums.
  void copy_ahead() {
    const int64_t parts = s_.extent(parts_).value_or(0),
                  bytes = s_.bytes_of(m_.left.buffer()).value_or(0) +
                          s_.bytes_of(right_.buffer()).value_or(0);
    if (!copies_alone_ || parts < kStages || bytes * kStages > target_.local_bytes) return;
    for (const Stage& stage : {m_.left, right_})
      if (lands_alone(stage)) s_.async_copy(stage);
    s_.pipeline(parts_, kStages, {m_.left, right_});
    const size_t before = threads_.size();
    for (size_t i = 0; i < before; ++i) threads_.push_back(s_.prologue_of(threads_[i]));
  }

  // Copies of 4, 8 or 16 bytes that are aligned to as many: single elements, or vectors of packed
  // weights.
  bool lands_alone(const Stage& stage) const {
    const auto lanes = vectors_.find(stage.label());
    const int64_t bytes = (lanes == vectors_.end() ? 1 : lanes->second) * dtype_bytes(type_);
    return copied_load(s_.store_of(stage)->value).defined() &&
           (bytes == 4 || ((bytes == 8 || bytes == 16) && from_weights(stage)));
  }

  bool from_weights(const Stage& stage) const {
    const Expr from = copied_load(s_.store_of(stage)->value);
    return from.defined() && s_.kernel().buffer(from->buffer).role == BufferRole::constant;
  }

  // The copies of a stage, dealt out to the threads, a vector each where its elements lie side by
  // side; else neighbouring threads take neighbouring rows, which gathered windows have side by
  // side.
  void spread(const Stage& stage, bool rows) {
    const std::string& label = stage.label();
    Loops own = own_loops(stage, parts_);
    Loop lane;
    int64_t points = 1;
    for (const Loop& loop : own) points *= s_.extent(loop).value_or(1);
    // Single elements need no alignment
    const bool alone = copies_alone_ && dtype_bytes(type_) == 4 && !from_weights(stage);
    const bool vectors = !alone && points % (vector_ * tile_.threads()) == 0 &&
                         side_by_side(stage, own.back());
    if (vectors) {
      const Cut cut = s_.split(own.back(), vector_, Tail::guard, label + "_v", label + "_lane");
      own.back() = cut.outer, lane = cut.inner;
      vectors_[label] = vector_;
    } else if (rows && own.size() > 1) {
      std::swap(own[own.size() - 1], own[own.size() - 2]);
      s_.reorder(own);
    }
    const Loop all = s_.fuse(own, label + "_all");
    const Cut dealt = s_.split(all, tile_.threads(), Tail::guard, label + "_turn",
                               label + "_thread");
    s_.reorder({dealt.inner, dealt.outer});
    s_.unroll(dealt.outer);
    s_.vectorize(lane);
    threads_.push_back(dealt.inner);
  }

  // Vectors of the loop's iterations are loaded from consecutive elements, and all or none of a
  // vector is there.
  bool side_by_side(const Stage& stage, const Loop& loop) const {
    const std::string vector = loop.name() + ".v", lane = loop.name() + ".l";
    Ranges ranges;
    visit(s_.kernel().body, [&](const Stmt& n) {
      if (n->kind == StmtKind::loop) ranges[n->var] = {Expr(0), n->extent - Expr(1)};
    });
    ranges[vector] = {Expr(0), Expr(s_.extent(loop).value_or(1) / vector_ - 1)};
    ranges[lane] = {Expr(0), Expr(vector_ - 1)};
    if (s_.extent(loop).value_or(1) % vector_ != 0) return false;
    bool good = true;
    const auto placed = [&](const Expr& e) {
      return simplify(substitute(e, loop.name(), var(vector) * Expr(vector_) + var(lane)), ranges);
    };
    visit(s_.store_of(stage)->value, [&](const Expr& e) {
      if (e->kind == ExprKind::select) good &= !uses_var(placed(e->args[0]), lane);
      if (e->kind != ExprKind::load) return;
      for (size_t d = 0; d < e->args.size(); ++d) {
        const Expr at = placed(e->args[d]),
                   rest = d + 1 == e->args.size() ? simplify(at - var(lane), ranges) : at;
        good &= !uses_var(rest, lane);
      }
    });
    return good;
  }

  ScheduleBuilder s_;
  const TileStages& m_;
  const Target& target_;
  BlockTile tile_;
  DType type_ = DType::f32;  // of the operands
  int64_t vector_ = 1, columns_ = 1;
  bool copies_alone_ = false;  // the device does
  std::string block_;
  Stage right_;                             // copies the right operand
  Stage left_operand_, right_operand_;      // of the instruction
  std::vector<std::string> axes_;           // of threads
  Loops threads_;                           // loops over them
  std::map<std::string, int64_t> vectors_;  // elements that a copying stage moves at once
  Loop parts_, step_, operand_step_;        // of the depth
  Loop row_, column_;                       // of y, in a tile
  std::vector<Cut> own_;                    // loops over the threads' own sums, rows and columns
  Cut group_, product_, element_;  // of the sums with an instruction: of threads, products, in one
};

}  // namespace

Expected<Schedule> tiled_schedule(const Kernel& kernel, const TileStages& m, const Target& target) {
  return TiledSpace(kernel, m, target).run();
}

}  // namespace tw
