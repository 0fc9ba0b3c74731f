// Products whose operands a block's threads share (passes/lower/tiles.h). A block makes one tile of the output: for each part of the depth its
// threads copy the tile's rows of xt and columns of w side by side into the memory they share, then each adds to its own sums.
#include "autotune/spaces/space.h"
#include "ir/simplify.h"
#include "passes/lower/tiles.h"

namespace tw {
namespace {

class TiledSpace {
 public:
  TiledSpace(const Kernel& kernel, const Target& target) : s_(kernel, target), target_(target) {
    for (const DeviceAxis& axis : target.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread" && thread_.empty()) thread_ = axis.name;
    }
    const Buffer& left = kernel.buffer(*kernel.find_buffer("xt"));
    const std::optional<BlockTile> tile = block_tile(target, left.dtype, s_.extent("i"), s_.extent("j").value_or(0), s_.extent("k").value_or(0));
    TW_CHECK(tile, "a kernel in tiles for a target that has none");
    tile_ = *tile;
  }

  Expected<Schedule> run() {
    constant_ = !s_.has_stage("w");
    if (constant_) s_.cache_read("w", "acc", "wt", block_memory(target_)->name);
    const std::vector<std::string> outer = cut_output();
    sums();
    operands();
    own_sums();
    s_.unroll("yr");
    if (s_.extent("j").value_or(1) % tile_.lanes == 0 || !s_.decides("yl")) s_.vectorize("yl");
    else s_.unroll("yl");
    bind_threads();
    s_.bind(s_.fuse(outer, "tile"), block_);
    return s_.finish();
  }

 private:
  // The result: the loops over tiles.
  std::vector<std::string> cut_output() {
    std::vector<std::string> outer = s_.loops_of("y");
    outer.resize(outer.size() - 2);   // i, j
    s_.split("i", tile_.rows, Tail::guard, "i0", "i1");
    s_.split("j", tile_.columns, Tail::guard, "j0", "j1");
    s_.split("i1", tile_.thread_rows, Tail::guard, "yt", "yr");
    s_.split("j1", tile_.lanes, Tail::guard, "yw", "yl");
    outer.insert(outer.end(), {"i0", "j0"});
    std::vector<std::string> order = outer;
    order.insert(order.end(), {"yt", "yw", "yr", "yl"});
    s_.reorder(order);
    return outer;
  }

  void sums() {
    s_.compute_at("acc", "j0");
    s_.split("acc_ai", tile_.thread_rows, Tail::guard, "at", "ar");
    s_.split("acc_aj", tile_.lanes, Tail::guard, "aw", "al");
    s_.split("k", tile_.depth, Tail::guard, "k0", "k1");
    s_.reorder({"k0", "at", "aw", "k1", "ar", "al"});
    s_.decompose("acc", "k0");
    for (const char* suffix : {"", "_init"}) {
      s_.unroll(std::string("ar") + suffix);
      s_.vectorize(std::string("al") + suffix);
    }
  }

  void operands() {
    const std::string& memory = block_memory(target_)->name;
    s_.compute_at("xt", "k0");
    s_.set_scope("xt", memory);
    transpose("xt");
    s_.compute_at(constant_ ? "wt" : "w", "k0");
    if (!constant_) s_.set_scope("w", memory);
    spread("xt", true);
    spread(constant_ ? "wt" : "w", false);
  }

  // Rows innermost: a thread reads its own side by side.
  void transpose(const std::string& buffer) {
    std::vector<std::string> dims = names_of(buffer);
    std::vector<Expr> map;
    for (const std::string& d : dims) map.push_back(var(d));
    std::swap(map[map.size() - 1], map[map.size() - 2]);
    s_.layout(buffer, dims, map);
  }

  std::vector<std::string> names_of(const std::string& buffer) const {
    std::vector<std::string> dims;
    for (size_t d = 0; d < s_.kernel().buffer(*s_.kernel().find_buffer(buffer)).shape.size(); ++d) dims.push_back("d" + std::to_string(d));
    return dims;
  }

  // The copies of a stage in turns of the threads, a vector each where its elements lie side by side; else neighbouring threads take
  // neighbouring rows, which gathered windows have side by side.
  void spread(const std::string& label, bool rows) {
    std::vector<std::string> own = s_.loops_of(label);
    own.erase(own.begin(), std::find(own.begin(), own.end(), "k0") + 1);
    int64_t points = 1;
    for (const std::string& loop : own) points *= s_.extent(loop).value_or(1);
    const bool vectors = points % (tile_.lanes * tile_.threads()) == 0 && side_by_side(label, own.back());
    if (vectors) {
      s_.split(own.back(), tile_.lanes, Tail::guard, label + "_v", label + "_lane");
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

  // Vectors of the loop's iterations are loaded from consecutive elements, and all or none of a vector is there.
  bool side_by_side(const std::string& label, const std::string& loop) const {
    const std::string vector = loop + ".v", lane = loop + ".l";
    Ranges ranges;
    visit(s_.kernel().body, [&](const Stmt& n) { if (n->kind == StmtKind::loop) ranges[n->var] = {Expr(0), n->extent - Expr(1)}; });
    ranges[vector] = {Expr(0), Expr(s_.extent(loop).value_or(1) / tile_.lanes - 1)};
    ranges[lane] = {Expr(0), Expr(tile_.lanes - 1)};
    if (s_.extent(loop).value_or(1) % tile_.lanes != 0) return false;
    bool good = true;
    for (const Stmt& store : stores_of(s_.kernel().body)) {
      if (store->label != label) continue;
      const auto placed = [&](const Expr& e) { return simplify(substitute(e, loop, var(vector) * Expr(tile_.lanes) + var(lane)), ranges); };
      visit(store->value, [&](const Expr& e) {
        if (e->kind == ExprKind::select) good &= !uses_var(placed(e->args[0]), lane);
        if (e->kind != ExprKind::load) return;
        for (size_t d = 0; d < e->args.size(); ++d) {
          const Expr at = placed(e->args[d]), rest = d + 1 == e->args.size() ? simplify(at - var(lane), ranges) : at;
          good &= !uses_var(rest, lane);
        }
      });
    }
    return good;
  }

  // Each thread's sums side by side: [thread, .., row, column].
  void own_sums() {
    const std::vector<std::string> dims = names_of("acc");
    const Expr row = var(dims[dims.size() - 2]), column = var(dims.back());
    std::vector<Expr> map = {floor_div(row, Expr(tile_.thread_rows)) * Expr(tile_.columns / tile_.lanes) + floor_div(column, Expr(tile_.lanes))};
    for (size_t d = 0; d + 2 < dims.size(); ++d) map.push_back(var(dims[d]));
    map.push_back(floor_mod(row, Expr(tile_.thread_rows)));
    map.push_back(floor_mod(column, Expr(tile_.lanes)));
    s_.layout("acc", dims, map);
  }

  void bind_threads() {
    threads_.push_back(s_.fuse({"at", "aw"}, "acc_thread"));
    threads_.push_back(s_.fuse({"at_init", "aw_init"}, "init_thread"));
    threads_.push_back(s_.fuse({"yt", "yw"}, "y_thread"));
    for (const std::string& loop : threads_) s_.bind(loop, thread_);
  }

  ScheduleBuilder s_;
  const Target& target_;
  BlockTile tile_;
  std::string block_, thread_;
  std::vector<std::string> threads_;   // loops over them
  bool constant_ = false;              // w is a parameter
};

}  // namespace

Expected<Schedule> tiled_schedule(const Kernel& kernel, const Target& target) { return TiledSpace(kernel, target).run(); }

}  // namespace tw
