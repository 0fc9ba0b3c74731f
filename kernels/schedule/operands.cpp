#include "kernels/schedule/operands.h"

namespace tw {

Expr variable(const Loop& loop) { return loop.defined() ? var(loop.name()) : Expr(0); }

Expr filled_up(const Expr& index, int64_t factor) {
  const Expr part(factor);
  return factor == 1 ? index : floor_div(index, part) * part + floor_mod(index, part);
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
