// unguard c left
//   c: c[i] += x[i + k - 1] * w[k] where 0 <= i + k - 1 && i + k - 1 < 8
//     ->
//   c: c[i] += select(0 <= i + k - 1 && i + k - 1 < 8, x[i + k - 1], 0) * w[k]
//
// The sums run over points that conditions leave out, and the factor is 0 there: a number that is
// widened and counted from a zero is that zero. A copy of the factor then holds what an instruction
// may multiply at any point. Conditions stay that depend on spatial loops on which the factor does
// not. Sums of floats stay equal where the other factor is finite. Legal: a stage that adds
// products, with such a condition. The other factor is made of parameters and exists at those
// points.
#include <algorithm>

#include "ir/kernel/bounds.h"
#include "ir/kernel/guards.h"
#include "ir/schedule/factor.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

// The spatial loops of the path on which the condition depends
static std::vector<std::string> spatial_loops_of(const Expr& condition,
                                                 const std::vector<Stmt>& path) {
  std::vector<std::string> loops;
  for (const Stmt& s : path)
    if (const auto* loop = as<stmt::Loop>(s);
        loop && loop->role != AxisRole::reduce && uses_var(condition, loop->var))
      loops.push_back(loop->var);
  return loops;
}

static Expr guarded(const Expr& factor, const Expr& condition) {
  const int64_t zero = counted(factor).zero;
  const Expr number = number_in(factor);
  const Expr none = is_int(number.type()) ? int_imm(zero, number.type()) : imm(0, number.type());
  if (zero != 0 && as_const(none) != zero)  // the number's type lacks it
    return select(condition, factor, imm(0, factor.type()));
  return with_number(factor, select(condition, number, none));
}

// The sums with the conditions of `moved` in the factor. Error: the other factor does not exist at
// all of their points.
static Expected<Stmt> moved_into(const Kernel& kernel, const std::vector<Stmt>& path, Factor side,
                                 const std::vector<Expr>& moved, const std::vector<Expr>& others) {
  stmt::Store store = get<stmt::Store>(path.back());
  store.value = with_factor(store.value, side,
                            guarded(factor_of(store.value, side), conjunction(moved)));
  store.where = conjunction(others);
  const Stmt sums = make_store(std::move(store));
  Kernel alone = kernel;
  alone.body = replace(path.front(), path.back(), sums);
  if (Error error = check_bounds(alone, Tables::ours))
    return illegal("the other factor does not exist at all points: {0}",
                   error_text(std::move(error)));
  return sums;
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::Unguard& s) {
  TW_ASSIGN(const std::vector<Stmt> path, stage_path(kernel, s.stage));
  const stmt::Store& store = get<stmt::Store>(path.back());
  const Expr factor = factor_of(store.value, s.factor);
  if (store.combiner != Combiner::add || !factor.defined())
    return illegal("stage '{0}' does not add products", s.stage);
  const Factor side = s.factor == Factor::left ? Factor::right : Factor::left;
  std::string temp;  // some of its elements may not be written
  visit(factor_of(store.value, side), [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (load && kernel.buffer(load->buffer).role == BufferRole::temp)
      temp = kernel.buffer(load->buffer).name;
  });
  if (!temp.empty())
    return illegal("the other factor of stage '{0}' reads the temp '{1}'", s.stage, temp);
  std::vector<Expr> moved, of_reduce_loops, others;
  for (const Expr& condition : conjuncts(store.where)) {
    const std::vector<std::string> loops = spatial_loops_of(condition, path);
    const bool suits = std::ranges::all_of(
        loops, [&](const std::string& loop) { return uses_var(factor, loop); });
    (!suits ? others : loops.empty() ? of_reduce_loops : moved).push_back(condition);
  }
  if (moved.empty() && of_reduce_loops.empty())
    return illegal("stage '{0}' has no condition for the factor", s.stage);
  // Conditions on reduce loops alone may be the other factor's.
  std::vector<Expr> all = moved, rest = others;
  all.insert(all.end(), of_reduce_loops.begin(), of_reduce_loops.end());
  rest.insert(rest.end(), of_reduce_loops.begin(), of_reduce_loops.end());
  Expected<Stmt> sums = moved_into(kernel, path, s.factor, all, others);
  if (!sums && !moved.empty() && !of_reduce_loops.empty()) {
    llvm::consumeError(sums.takeError());
    sums = moved_into(kernel, path, s.factor, moved, rest);
  }
  if (!sums) return sums.takeError();
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(), *sums);
  return out;
}

}  // namespace tw::sched
