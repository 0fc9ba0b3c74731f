// Matrix products: MR rows times one packed panel in registers over the whole depth, panels
// outermost (their weights stay in cache while the rows pass). The tile:
// kernels/common/register_tile.h.
#include "kernels/common/register_tile.h"
#include "kernels/families.h"

namespace tw {
namespace {

// Distance in memory of the left operand's rows: the depth, where it is a plain matrix.
std::optional<int64_t> row_bytes(const Kernel& k) {
  auto depth = find_loop(k.body, "k") ? as_const(find_loop(k.body, "k")->extent) : std::nullopt;
  return depth ? std::optional<int64_t>(*depth * dtype_bytes(k.buffer(*k.find_buffer("acc")).dtype))
               : std::nullopt;
}

// Products of several steps of the depth in one sum (kernels/matmul/lower.cpp): the steps lie
// innermost in the panels.
bool sums_neighbours(const Kernel& k) {
  for (const Stmt& stage : stores_of(k.body))
    if (stage->label == "acc")
      return stage->value->kind == ExprKind::binary && stage->value->binary == BinaryOp::add;
  return false;
}

// Of the register tile.
int64_t block_rows(const ScheduleBuilder& s, int64_t vectors, bool paired) {
  // Vectors, without rules; rows that share a set of the cache
  constexpr int64_t kMostTile = 64, kSetBytes = 4096, kSetWays = 8;
  const std::optional<int64_t> all = s.extent("i"), bytes = row_bytes(s.kernel());
  const int64_t wide = paired ? kPairedVectors : vectors,
                most = all.value_or(s.target().vector_registers);
  std::vector<int64_t> others;
  for (int64_t rows = 1; s.open() && rows <= most; ++rows) {
    const bool strided = bytes && *bytes % kSetBytes == 0 && rows > kSetWays;
    if (s.rules() ? fits_registers(s.target(), {rows, wide}) && !strided : rows * wide <= kMostTile)
      others.push_back(rows);
  }
  return s.choose(
      "rows", paired ? paired_rows(s.target(), all) : tile_rows(s.target(), vectors, all, bytes),
      others);
}

}  // namespace

void schedule_matmul(ScheduleBuilder& s) {
  for (const char* copy : {"xp", "w", "ws", "wo"})
    if (s.has_stage(copy)) s.map_nest(copy);
  const Kernel& k = s.kernel();
  DType t = k.buffer(*k.find_buffer("acc")).dtype;
  int64_t lanes = s.target().lanes(dtype_bytes(t));
  const std::string paired = paired_loop(s);
  const Shape& packed = k.buffer(*k.find_buffer("w")).shape;
  int64_t panel = *as_const(
      packed[packed.size() - (paired.empty() && !sums_neighbours(k) ? 1 : 2)]);
  int64_t vectors = std::max<int64_t>(1, panel / lanes), lane = std::min(panel, lanes);
  const int64_t rows = block_rows(s, vectors, !paired.empty());

  const bool one_column = s.extent("j") == 1;  // its lanes would all store to one place
  const std::string panels = one_column ? "j" : "j0";
  if (!one_column) s.split("j", panel, Tail::guard, "j0", "j1");
  bool split_panel = panel > lane;
  if (split_panel && !one_column) s.split("j1", lane, Tail::guard, "jv", "jl");
  std::string column_lane = split_panel ? "jl" : "j1";
  // The sums of a symbolic number of rows come in whole tiles; the tail is a branch a row of the
  // output only.
  std::string row = "i";
  if (rows > 1) {
    s.split("i", rows, s.extent("i") ? Tail::shift : Tail::guard, "i0", "i1");
    row = "i0";
  }
  std::vector<std::string> outer;
  for (const std::string& name : s.loops_of("y"))
    if (name[0] == 'b') outer.push_back(name);
  // Panels pass each block of rows
  const bool rows_outside = s.choose_switch("rows_outside", false);
  outer.push_back(rows_outside ? row : panels);
  outer.push_back(rows_outside ? panels : row);
  const std::string at = outer.back();
  std::vector<std::string> order = outer;
  order.insert(order.end(), {"i1", "jv", column_lane});
  s.reorder(order);
  std::string depth = "k";
  if (!paired.empty()) {
    const std::vector<std::string> steps = accumulate_pairs(s, "acc", at, paired, {"k"}, {"ai"},
                                                            "aj");
    depth = steps.empty() ? "" : steps.back();
    for (const char* step : {"k2", "k2t"})
      if (step != depth) s.unroll(step);
  } else {
    s.compute_at("acc", at);
    std::string acc_lane = "acc_aj";
    if (split_panel) {
      s.split("acc_aj", lane, Tail::guard, "acc_jv", "acc_jl");
      acc_lane = "acc_jl";
    }
    const bool in_blocks = s.has_loop("kr");  // of small integers (kernels/matmul/lower_nbits.cpp)
    if (in_blocks) depth = "kc";
    s.accumulate(
        "acc",
        in_blocks ? std::vector<std::string>{"kb", "kc", "kr"} : std::vector<std::string>{"k"},
        {"acc_ai", "acc_jv"}, acc_lane);
    s.set_scope("acc", "register");
    if (in_blocks) s.unroll("kr");
    s.unroll_part(depth);
  }
  // a single row leaves no time for it: it waits for the weights anyway
  if (rows > 1) s.prefetch_panels("w", depth, !paired.empty());
  s.unroll("i1");
  s.unroll("jv");
  s.vectorize(column_lane);
  s.parallelize(outer, "yp");
}

}  // namespace tw
