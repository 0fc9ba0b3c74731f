#include "kernels/schedule/operands.h"

namespace tw {

Expr variable(const Loop& loop) { return loop.defined() ? var(loop.name()) : Expr(0); }

Expr filled_up(const Expr& index, int64_t factor) {
  const Expr part(factor);
  return factor == 1 ? index : floor_div(index, part) * part + floor_mod(index, part);
}

std::vector<ScheduleBuilder::PackedDim> panel_dims(const std::string& name, const Expr& column,
                                                   const Expr& step, int64_t panel,
                                                   int64_t together,
                                                   const IntegerProduct& product) {
  const Expr within = floor_mod(column, Expr(panel)), steps(together);
  std::vector<ScheduleBuilder::PackedDim> dims = {
      {floor_div(column, Expr(panel)), name + "j"},
      {together == 1 ? step : floor_div(step, steps), name + "k"}};
  const Expr place = floor_mod(step, steps);
  if (product.tiles) {
    const Expr columns(product.columns), neighbours(product.neighbours);
    dims.push_back({floor_div(within, columns), name + "t"});
    dims.push_back({floor_div(place, neighbours), name + "q"});
    dims.push_back(
        {floor_mod(within, columns) * neighbours + floor_mod(place, neighbours), name + "l"});
  } else {
    dims.push_back({within, name + "l"});
    if (together > 1) dims.push_back({place, name + "p"});
  }
  return dims;
}

std::vector<ScheduleBuilder::PackedDim> row_dims(const std::string& name, const Expr& row,
                                                 const Expr& step, const IntegerProduct& product) {
  const Expr rows(product.rows), depth(product.depth);
  if (product.rows == 1 && !product.tiles)
    return {{row, name + "i"}, {filled_up(step, product.depth), name + "k"}};
  return {{floor_div(row, rows), name + "t"},
          {floor_div(step, depth), name + "s"},
          {floor_mod(row, rows), name + "i"},
          {floor_mod(step, depth), name + "k"}};
}

std::vector<ScheduleBuilder::PackedDim> batch_dims(const ScheduleBuilder& s, const Stage& stage,
                                                   Factor factor, const std::string& name,
                                                   const Loop& row, const Loop& column) {
  const Expr operand = s.factor_of(stage, factor);
  std::vector<ScheduleBuilder::PackedDim> dims;
  for (const Loop& loop : s.spatial_loops_of(stage))
    if (!(loop == row) && !(loop == column) && uses_var(operand, loop.name()))
      dims.push_back({variable(loop), name + "b" + std::to_string(dims.size())});
  return dims;
}

Steps split_steps(ScheduleBuilder& s, const Loop& depth, const std::string& name,
                  const IntegerProduct& product) {
  s.pad_zeros(depth, product.depth);
  const auto cut = s.split(depth, product.depth, Tail::guard, depth.name(), name + "p");
  if (!product.tiles) return {cut.outer, cut.inner};
  return {cut.outer,
          s.split(cut.inner, product.neighbours, Tail::guard, name + "q", name + "p").inner};
}

IntegerProduct chosen_instruction(
    const ScheduleBuilder& s,
    const std::function<IntegerProduct(const std::vector<std::string>& without)>& best) {
  constexpr size_t kMost = 4;
  constexpr int64_t kNone = -1;
  std::vector<IntegerProduct> all = {best({})};
  if (!all[0].defined() || !s.open()) return all[0];
  std::vector<std::string> without;
  while (all.back().defined() && all.size() <= kMost) {
    without.push_back(all.back().intrinsic);
    all.push_back(best(without));
  }
  all.pop_back();
  std::vector<int64_t> others = counted(1, static_cast<int64_t>(all.size()) - 1);
  others.push_back(kNone);
  const int64_t chosen = s.choose("instruction", 0, others);
  if (chosen != kNone) return all[static_cast<size_t>(chosen)];
  IntegerProduct none;
  none.left = all[0].left;
  return none;
}

}  // namespace tw
