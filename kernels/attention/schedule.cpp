// Attention: a block of query rows at a time. Its scores stay on the stack, the tiles of both
// products in registers; a panel of keys or values stays in the L1 cache while the block's rows
// pass it.
#include <algorithm>
#include <bit>

#include "kernels/common/register_tile.h"
#include "kernels/families.h"

namespace tw {
namespace {

constexpr int64_t kBlockRows = 16;
constexpr int64_t kStackBytes = 40 << 10;  // of the scores and their exponentials
constexpr int64_t kMostKeys = 2048;        // of a row there

// The register tile of a product ACC at LOOP of its reader; its columns are one panel.
void map_product(ScheduleBuilder& s, const std::string& acc, const std::string& loop,
                 int64_t lanes) {
  s.compute_at(acc, loop);
  std::string depth = acc + "_k", column = acc + "_j";
  if (s.extent(column).value_or(0) > lanes) {
    s.split(column, lanes, Tail::guard, acc + "_jv", acc + "_jl");
    column = acc + "_jl";
  }
  s.accumulate(acc, {depth}, {acc + "_i", acc + "_jv"}, column);
  s.set_scope(acc, "register");
  s.unroll_part(depth);
}

// NAME's lanes in registers and their fold, row by row, in the block of queries.
void map_fold(ScheduleBuilder& s, const std::string& name, const std::string& block) {
  std::string part = name + "_part";
  s.compute_at(name, block);
  s.compute_at(part, name + "_i");
  s.accumulate(part, {name + "_k"}, {}, part + "_" + name + "_l");
  s.set_scope(part, "register");
  s.vectorize(name + "_f");
}

// The copy in panels; rows of the operand that become columns go in squares of vectors, which
// registers transpose.
void map_panels(ScheduleBuilder& s, const std::string& copy, int64_t lanes) {
  Stmt store;
  for (const Stmt& stage : stores_of(s.kernel().body))
    if (stage->label == copy) store = stage;
  const std::string depth = copy + "_k", lane = copy + "_l";
  const bool turned = store->value->kind == ExprKind::load &&
                      uses_var(store->value->args.back(), depth);
  if (!turned || lanes < 2 || s.extent(depth).value_or(1) % lanes != 0 ||
      s.extent(lane).value_or(1) % lanes != 0)
    return s.map_nest(copy);
  std::vector<std::string> outer = s.loops_of(copy);
  outer.resize(outer.size() - 2);
  s.split(depth, lanes, Tail::guard, copy + "_k0", copy + "_k1");
  s.split(lane, lanes, Tail::guard, copy + "_l0", copy + "_l1");
  outer.insert(outer.end(), {copy + "_l0", copy + "_k0"});
  std::vector<std::string> order = outer;
  order.insert(order.end(), {copy + "_k1", copy + "_l1"});
  s.reorder(order);
  s.unroll(copy + "_k1");
  s.vectorize(copy + "_l1");
  s.parallelize(outer, copy + "_p");
}

// STAGE_j into panels jp and, in them, vectors jv of lanes; the name of the innermost loop.
std::string split_columns(ScheduleBuilder& s, const std::string& stage, int64_t panel,
                          int64_t lanes) {
  s.split(stage + "_j", panel, Tail::guard, stage + "_jp", stage + "_ji");
  if (panel <= lanes) return stage + "_ji";
  s.split(stage + "_ji", lanes, Tail::guard, stage + "_jv", stage + "_jl");
  return stage + "_jl";
}

}  // namespace

void schedule_attention(ScheduleBuilder& s) {
  const Kernel& k = s.kernel();
  auto panel_of = [&](const char* name) {
    return *as_const(k.buffer(*k.find_buffer(name)).shape.back());
  };
  int64_t lanes = std::max(1, s.target().lanes(4)), key_panel = panel_of("kp"),
          column_panel = panel_of("vp");
  const std::optional<int64_t> all_rows = s.extent("y_i"),
                               keys = as_const(k.buffer(*k.find_buffer("s")).shape.back());
  // Else a thread's part of the arena holds a block's scores
  const bool on_stack = keys && *keys <= kMostKeys;
  const int64_t rows = all_rows.value_or(kFreeRows),
                fit = on_stack ? std::max<int64_t>(1, kStackBytes / 8 / *keys) : kBlockRows;
  auto tile_of = [&](const char* knob, int64_t panel) {
    std::vector<int64_t> others;
    // a part of a block
    if (!all_rows)
      return std::bit_floor(
          static_cast<uint64_t>(std::min(tile_rows(s.target(), panel / lanes, rows), rows)));
    for (int64_t n = 1;
         s.open() && n <= std::min({rows, fit, int64_t{s.target().vector_registers}}); ++n)
      if (!s.rules() || fits_registers(s.target(), {n, panel / lanes})) others.push_back(n);
    return static_cast<uint64_t>(
        s.choose(knob, std::min({tile_rows(s.target(), panel / lanes, rows), rows, fit}), others));
  };
  const auto key_tile = static_cast<int64_t>(tile_of("key_rows", key_panel)),
             tile = static_cast<int64_t>(tile_of("rows", column_panel));
  const int64_t larger = std::max(tile, key_tile),
                usual_block = std::min(
                    rows, std::max(larger, std::min(kBlockRows, fit) / larger * larger));
  const int64_t block = !all_rows ? rows
                                  : std::clamp(s.choose("block_rows", usual_block,
                                                        {4, 6, 8, 12, 16, 24, 32, 48, 64}),
                                               std::min(larger, rows), rows);
  map_panels(s, "kp", lanes);
  map_panels(s, "vp", lanes);

  // Blocks and tiles of y.
  std::vector<std::string> outer = s.loops_of("y");
  outer.resize(outer.size() - 2);
  s.split("y_i", block, all_rows ? Tail::shift : Tail::guard, "y_i0", "y_iq");
  s.split("y_iq", tile, Tail::shift, "y_it", "y_ir");
  std::string lane = split_columns(s, "y", column_panel, lanes);
  std::vector<std::string> order = outer;
  order.insert(order.end(), {"y_i0", "y_jp", "y_it", "y_ir", "y_jv", lane});
  s.reorder(order);
  map_product(s, "o", "y_it", lanes);
  s.unroll("y_ir");
  s.unroll("y_jv");
  s.vectorize(lane);

  // The block's sums, exponentials and scores, the last first.
  s.compute_at("inv", "y_i0");
  if (s.extent("inv_i") == lanes) s.vectorize("inv_i");
  map_fold(s, "sum", "y_i0");
  s.compute_at("e", "y_i0");
  s.split("e_j", lanes, Tail::guard, "e_jo", "e_jl");
  s.vectorize("e_jl");
  map_fold(s, "top", "y_i0");
  s.compute_at("s", "y_i0");
  s.split("s_i", key_tile, Tail::shift, "s_it", "s_ir");
  lane = split_columns(s, "s", key_panel, lanes);
  s.reorder({"s_jp", "s_it", "s_ir", "s_jv", lane});
  map_product(s, "acc", "s_it", lanes);
  s.unroll("s_ir");
  s.unroll("s_jv");
  s.vectorize(lane);
  outer.push_back("y_i0");
  if (!on_stack)
    for (const char* buffer : {"s", "e"}) s.set_scope(buffer, "thread");
  s.parallelize(outer, "yp");
}

}  // namespace tw
