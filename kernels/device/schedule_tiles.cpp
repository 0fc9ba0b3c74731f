// Products whose operands a block's threads share (kernels/device/tiles.h). A block makes one tile
// of the output: for each part of the depth its threads copy the tile's rows of xt and columns of w
// side by side into the memory they share, then each adds to its own sums; or those that do an
// instruction together take their parts of its operands and add to their parts of the sums. Where
// the device copies on its own, what comes next is on its way meanwhile.
#include <algorithm>

#include "ir/kernel/copies.h"
#include "ir/schedule/intrinsic.h"
#include "ir/simplify.h"
#include "kernels/default_schedule.h"
#include "kernels/device/tiles.h"
#include "kernels/families.h"

namespace tw {
namespace {

constexpr int64_t kStages = 3;  // of a pipeline of copies

class TiledSpace {
 public:
  TiledSpace(const Kernel& kernel, const Target& target) : s_(kernel, target), target_(target) {
    for (const DeviceAxis& axis : target.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread") axes_.push_back(axis.name);
    }
    type_ = kernel.buffer(*kernel.find_buffer("xt")).dtype;
    const std::optional<BlockTile> tile = block_tile(
        target, type_, s_.extent("i"), s_.extent("j").value_or(0), s_.extent("k").value_or(0));
    TW_CHECK(tile, "a kernel in tiles for a target that has none");
    tile_ = *tile;
    copies_alone_ = std::ranges::any_of(target.intrinsics,
                                        [](const Intrinsic& i) { return i.emit == "async"; });
    vector_ = std::max<int64_t>(1, target.lanes(dtype_bytes(type_)));
  }

  Expected<Schedule> run() {
    const std::string memory = block_memory(target_)->name;
    if (!s_.has_stage("w")) s_.cache_read("w", "acc", "wt", memory), right_ = "wt";
    if (tile_.instruction)
      s_.cache_read("xt", "acc", "xf", "stack"), s_.cache_read(right_, "acc", "wf", "stack");
    const std::vector<std::string> outer = cut_output();
    s_.compute_at("acc", "j0");
    s_.split("k", tile_.depth, Tail::guard, "k0", "k1");
    if (tile_.instruction) tensor_sums();
    else sums();
    s_.compute_at("xt", "k0");
    s_.set_scope("xt", memory);
    s_.compute_at(right_, "k0");
    s_.set_scope(right_, memory);
    // a thread's rows side by side
    if (!tile_.instruction)
      map("xt", [](const Expr& r, const Expr& c) { return std::vector<Expr>{c, r}; });
    spread("xt", true);
    spread(right_, false);
    copy_ahead();
    if (tile_.instruction) bind_tensor();
    else bind_sums();
    s_.bind(s_.fuse(outer, "tile"), block_);
    return s_.finish();
  }

 private:
  // The result: the loops over tiles. What is inside of one comes later.
  std::vector<std::string> cut_output() {
    std::vector<std::string> outer = s_.loops_of("y");
    outer.resize(outer.size() - 2);  // i, j
    columns_ = s_.extent("j").value_or(1);
    s_.split("i", tile_.rows, Tail::guard, "i0", "i1");
    s_.split("j", tile_.columns, Tail::guard, "j0", "j1");
    outer.insert(outer.end(), {"i0", "j0"});
    std::vector<std::string> order = outer;
    order.insert(order.end(), {"i1", "j1"});
    s_.reorder(order);
    return outer;
  }

  void sums() {
    s_.split("i1", tile_.thread_rows, Tail::guard, "yt", "yr");
    s_.split("j1", tile_.lanes, Tail::guard, "yw", "yl");
    s_.reorder({"yt", "yw", "yr", "yl"});
    s_.split("acc_ai", tile_.thread_rows, Tail::guard, "at", "ar");
    s_.split("acc_aj", tile_.lanes, Tail::guard, "aw", "al");
    s_.reorder({"k0", "at", "aw", "k1", "ar", "al"});
    s_.decompose("acc", "k0");
    for (const char* suffix : {"", "_init"}) {
      s_.unroll(std::string("ar") + suffix);
      s_.vectorize(std::string("al") + suffix);
    }
    s_.unroll("yr");
    finish_lanes("yl", tile_.lanes);
    const int64_t across = tile_.columns / tile_.lanes;
    map("acc", [&](const Expr& r, const Expr& c) {  // each thread's own
      return std::vector<Expr>{
          floor_div(r, Expr(tile_.thread_rows)) * Expr(across) + floor_div(c, Expr(tile_.lanes)),
          floor_mod(r, Expr(tile_.thread_rows)), floor_mod(c, Expr(tile_.lanes))};
    });
  }

  void bind_sums() {
    for (const auto& [outer, inner] : {std::pair{"at", "aw"}, {"at_init", "aw_init"}, {"yt", "yw"}})
      threads_.push_back(s_.fuse({outer, inner}, std::string(outer) + "_thread"));
    for (const std::string& loop : threads_) s_.bind(loop, axes_[0]);
  }

  void finish_lanes(const std::string& loop, int64_t lanes) {
    if (columns_ % lanes == 0) s_.vectorize(loop);
    else s_.unroll(loop);
  }

  // The instruction's operands as its semantics place them: [.., which of them, thread, element].
  std::vector<Expr> placed(size_t parameter, const Expr& row, const Expr& column,
                           const char* row_loop, const char* column_loop) const {
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
    std::vector<std::string> loops;  // of the instruction, outermost first
    const Kernel semantics = *parse_kernel(tile_.instruction->semantics);
    for (Stmt s = semantics.body; s->kind == StmtKind::loop; s = s->body[0])
      loops.push_back(s->var);
    const char *i = loops[0].c_str(), *j = loops[1].c_str(), *k = loops[2].c_str();
    const int64_t m = tile_.m, n = tile_.n, depth = tile_.k, part = tile_.thread_rows,
                  across = tile_.columns / part;
    s_.split("acc_ai", part, Tail::guard, "ag", "a1");
    s_.split("a1", m, Tail::guard, "am", "ai");
    s_.split("acc_aj", part, Tail::guard, "ah", "b1");
    s_.split("b1", n, Tail::guard, "an", "aj");
    s_.split("k1", depth, Tail::guard, "ks", "kk");
    s_.reorder({"k0", "ag", "ah", "ks", "am", "an", "ai", "aj", "kk"});
    s_.decompose("acc", "k0");
    s_.compute_at("xf", "ks");
    s_.compute_at("wf", "ks");
    map("acc", [&](const Expr& r, const Expr& c) {
      std::vector<Expr> at = {floor_div(r, Expr(part)) * Expr(across) + floor_div(c, Expr(part)),
                              floor_div(floor_mod(r, Expr(part)), Expr(m)),
                              floor_div(floor_mod(c, Expr(part)), Expr(n))};
      for (const Expr& e : placed(2, floor_mod(r, Expr(m)), floor_mod(c, Expr(n)), i, j))
        at.push_back(e);
      return at;
    });
    map("xf", [&](const Expr& r, const Expr& c) {
      std::vector<Expr> at = {floor_div(r, Expr(m))};
      for (const Expr& e : placed(0, floor_mod(r, Expr(m)), c, i, k)) at.push_back(e);
      return at;
    });
    map("wf", [&](const Expr& r, const Expr& c) {
      std::vector<Expr> at = {floor_div(c, Expr(n))};
      for (const Expr& e : placed(1, r, floor_mod(c, Expr(n)), k, j)) at.push_back(e);
      return at;
    });
    s_.tensorize("ai", tile_.instruction->name, "product");
  }

  // Threads hold pairs of neighbours: 8 rows (columns, of the right operand) by 4 pairs along the
  // other side.
  void pairs(const std::string& rows, const std::string& columns, const std::string& name,
             std::vector<std::string> outer, bool vector) {
    s_.split(rows, 8, Tail::guard, name + "R", name + "r");
    s_.split(columns, 8, Tail::guard, name + "C", name + "c");
    s_.split(name + "c", 2, Tail::guard, name + "p", name + "e");
    std::vector<std::string> order = outer;
    order.insert(order.end(), {name + "r", name + "p", name + "R", name + "C", name + "e"});
    s_.reorder(order);
    for (const char* part : {"R", "C"}) s_.unroll(name + part);
    if (vector) s_.vectorize(name + "e");
    else s_.unroll(name + "e");
    s_.bind(s_.fuse({name + "r", name + "p"}, name + "_lane"), axes_[0]);
  }

  void bind_tensor() {
    const std::vector<std::string> x = own_loops("xf", "ks"), w = own_loops("wf", "ks");
    pairs(x[0], x[1], "xf", {}, true);
    pairs(w[1], w[0], "wf", {}, false);
    s_.split("i1", tile_.thread_rows, Tail::guard, "yg", "y1");
    s_.split("j1", tile_.thread_rows, Tail::guard, "yh", "y2");
    pairs("y1", "y2", "y", {"yg", "yh"}, columns_ % 2 == 0);
    s_.fuse({"am_init", "an_init"}, "tiles_init");
    pairs("ai_init", "aj_init", "z", {"ag_init", "ah_init"}, false);
    for (const char* loop : {"am", "an", "tiles_init"}) s_.unroll(loop);
    for (const auto& [outer, inner] : {std::pair{"ag", "ah"}, {"ag_init", "ah_init"}, {"yg", "yh"}})
      s_.bind(s_.fuse({outer, inner}, std::string(outer) + "_warp"), axes_[1]);
    for (const std::string& loop : threads_) {
      s_.split(loop, tile_.together, Tail::guard, loop + "_warp", loop + "_lane");
      s_.bind(loop + "_lane", axes_[0]);
      s_.bind(loop + "_warp", axes_[1]);
    }
  }

  // Element [.., row, column] moves to [mapped.. (the first), .., mapped.. (the others)].
  void map(const std::string& buffer,
           const std::function<std::vector<Expr>(const Expr& row, const Expr& column)>& to) {
    std::vector<std::string> dims;
    for (size_t d = 0; d < s_.kernel().buffer(*s_.kernel().find_buffer(buffer)).shape.size(); ++d)
      dims.push_back("d" + std::to_string(d));
    const std::vector<Expr> places = to(var(dims[dims.size() - 2]), var(dims.back()));
    std::vector<Expr> all = {places[0]};
    for (size_t d = 0; d + 2 < dims.size(); ++d) all.push_back(var(dims[d]));
    all.insert(all.end(), places.begin() + 1, places.end());
    s_.layout(buffer, dims, all);
  }

  std::vector<std::string> own_loops(const std::string& label, const std::string& at) const {
    std::vector<std::string> own = s_.loops_of(label);
    own.erase(own.begin(), std::find(own.begin(), own.end(), at) + 1);
    return own;
  }

  // Copies that the device makes on its own, and stages that only copy, run ahead of the sums.
  void copy_ahead() {
    const int64_t parts = s_.extent("k0").value_or(0),
                  bytes = s_.bytes_of("xt").value_or(0) + s_.bytes_of(right_).value_or(0);
    if (!copies_alone_ || parts < kStages || bytes * kStages > target_.local_bytes) return;
    for (const std::string& stage : {std::string("xt"), right_})
      if (lands_alone(stage)) s_.async_copy(stage);
    s_.pipeline("k0", kStages, {"xt", right_});
    const size_t before = threads_.size();
    for (size_t i = 0; i < before; ++i) threads_.push_back(threads_[i] + "_pro");
  }

  // Copies of 4, 8 or 16 bytes that are aligned to as many: single elements, or vectors of packed
  // weights.
  bool lands_alone(const std::string& label) const {
    const int64_t lanes = s_.has_loop(label + "_lane") ? *s_.extent(label + "_lane") : 1,
                  bytes = lanes * dtype_bytes(type_);
    return copied_load(store_of(label)->value).defined() &&
           (bytes == 4 || ((bytes == 8 || bytes == 16) && from_weights(label)));
  }

  bool from_weights(const std::string& label) const {
    const Expr from = copied_load(store_of(label)->value);
    return from.defined() && s_.kernel().buffer(from->buffer).role == BufferRole::constant;
  }

  Stmt store_of(const std::string& label) const {
    for (const Stmt& store : stores_of(s_.kernel().body))
      if (store->label == label) return store;
    TW_UNREACHABLE("no stage '{0}'", label);
  }

  // The copies of a stage in turns of the threads, a vector each where its elements lie side by
  // side; else neighbouring threads take neighbouring rows, which gathered windows have side by
  // side.
  void spread(const std::string& label, bool rows) {
    std::vector<std::string> own = own_loops(label, "k0");
    int64_t points = 1;
    for (const std::string& loop : own) points *= s_.extent(loop).value_or(1);
    // Single elements need no alignment
    const bool alone = copies_alone_ && dtype_bytes(type_) == 4 && !from_weights(label);
    const bool vectors = !alone && points % (vector_ * tile_.threads()) == 0 &&
                         side_by_side(label, own.back());
    if (vectors) {
      s_.split(own.back(), vector_, Tail::guard, label + "_v", label + "_lane");
      own.back() = label + "_v";
    } else if (rows && own.size() > 1) {
      std::swap(own[own.size() - 1], own[own.size() - 2]);
      s_.reorder(own);
    }
    const std::string all = s_.fuse(own, label + "_all");
    s_.split(all, tile_.threads(), Tail::guard, label + "_turn", label + "_thread");
    s_.reorder({label + "_thread", label + "_turn"});
    s_.unroll(label + "_turn");
    s_.vectorize(label + "_lane");
    threads_.push_back(label + "_thread");
  }

  // Vectors of the loop's iterations are loaded from consecutive elements, and all or none of a
  // vector is there.
  bool side_by_side(const std::string& label, const std::string& loop) const {
    const std::string vector = loop + ".v", lane = loop + ".l";
    Ranges ranges;
    visit(s_.kernel().body, [&](const Stmt& n) {
      if (n->kind == StmtKind::loop) ranges[n->var] = {Expr(0), n->extent - Expr(1)};
    });
    ranges[vector] = {Expr(0), Expr(s_.extent(loop).value_or(1) / vector_ - 1)};
    ranges[lane] = {Expr(0), Expr(vector_ - 1)};
    if (s_.extent(loop).value_or(1) % vector_ != 0) return false;
    bool good = true;
    const auto placed = [&](const Expr& e) {
      return simplify(substitute(e, loop, var(vector) * Expr(vector_) + var(lane)), ranges);
    };
    visit(store_of(label)->value, [&](const Expr& e) {
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
  const Target& target_;
  BlockTile tile_;
  DType type_ = DType::f32;  // of the operands
  int64_t vector_ = 1, columns_ = 1;
  bool copies_alone_ = false;         // the device does
  std::string block_, right_ = "w";   // the stage that copies the right operand
  std::vector<std::string> axes_;     // of threads
  std::vector<std::string> threads_;  // loops over them
};

}  // namespace

Expected<Schedule> tiled_schedule(const Kernel& kernel, const Target& target) {
  return TiledSpace(kernel, target).run();
}

}  // namespace tw
