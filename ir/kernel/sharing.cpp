#include "ir/kernel/sharing.h"

#include <algorithm>

#include "ir/simplify.h"

namespace tw {

double sharing(int64_t iterations, int64_t cores) {
  if (iterations <= 1 || cores <= 1) return 1;
  return static_cast<double>(iterations) / static_cast<double>((iterations + cores - 1) / cores);
}

namespace {

bool never(const Expr& condition, const Ranges& ranges) {
  return condition.defined() && is_const(simplify(condition, ranges), 0);
}

bool is_output(const Kernel& kernel, const stmt::Store& store) {
  return kernel.buffer(store.buffer).role == BufferRole::output;
}

// True: some point of the ranges stores; with `outputs`, it stores to an output. Adds the ranges of
// the loops in s.
bool stores(const Kernel& kernel, const Stmt& s, bool outputs, Ranges& ranges) {
  if (const auto* store = as<stmt::Store>(s))
    return (!outputs || is_output(kernel, *store)) && !never(store->where, ranges);
  if (const auto* guard = as<stmt::If>(s); guard && never(guard->condition, ranges)) return false;
  if (const auto* loop = as<stmt::Loop>(s))
    ranges[loop->var] = Range{Expr(0), simplify(loop->extent - Expr(1), ranges)};
  return std::ranges::any_of(
      children(s), [&](const Stmt& part) { return stores(kernel, part, outputs, ranges); });
}

// Iterations of a parallel loop up to the last one that stores something. The rest may lie behind a
// guard that the loop far exceeds.
int64_t iterations_with_work(const Kernel& kernel, const stmt::Loop& loop, int64_t iterations) {
  const bool outputs = std::ranges::any_of(
      stores_of(loop.body), [&](const StoreRef& store) { return is_output(kernel, *store); });
  const auto idle_from = [&](int64_t iteration) {
    Ranges ranges = {{loop.var, {Expr(iteration), Expr(iterations - 1)}}};
    return !stores(kernel, loop.body, outputs, ranges);
  };
  int64_t low = 1, high = iterations;  // the first idle iteration is in [low, high]
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (idle_from(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

}  // namespace

double sharing(const Kernel& kernel, int64_t cores) {
  double least = 0;
  visit(kernel.body, [&](const Stmt& s) {
    const auto* loop = as<stmt::Loop>(s);
    if (!loop || loop->kind != LoopKind::parallel) return;
    const auto iterations = as_const(loop->extent);
    double here = static_cast<double>(cores);
    if (iterations) {  // each core has this many neighbouring iterations
      const int64_t work = iterations_with_work(kernel, *loop, *iterations);
      here = static_cast<double>(work) /
             static_cast<double>(std::min(work, (*iterations + cores - 1) / cores));
    }
    least = least == 0 ? here : std::min(least, here);
  });
  return std::max(1.0, least);
}

}  // namespace tw
