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

bool is_output(const Kernel& kernel, const Stmt& s) {
  return s->kind == StmtKind::store &&
         kernel.buffers[static_cast<size_t>(s->buffer.index)].role == BufferRole::output;
}

// Whether some point of the ranges stores: to an output, if `outputs`. Adds the ranges of the
// loops.
bool stores(const Kernel& kernel, const Stmt& s, bool outputs, Ranges& ranges) {
  if (s->kind == StmtKind::store)
    return (!outputs || is_output(kernel, s)) && !never(s->where, ranges);
  if (s->kind == StmtKind::if_then && never(s->condition, ranges)) return false;
  if (s->kind == StmtKind::loop)
    ranges[s->var] = Range{Expr(0), simplify(s->extent - Expr(1), ranges)};
  return std::ranges::any_of(
      s->body, [&](const Stmt& part) { return stores(kernel, part, outputs, ranges); });
}

// Iterations of a parallel loop before those that store nothing, as behind a guard that the loop
// passes by far.
int64_t iterations_with_work(const Kernel& kernel, const Stmt& loop, int64_t iterations) {
  bool outputs = false;
  visit(loop, [&](const Stmt& s) { outputs |= is_output(kernel, s); });
  const auto idle_from = [&](int64_t iteration) {
    Ranges ranges = {{loop->var, {Expr(iteration), Expr(iterations - 1)}}};
    return !stores(kernel, loop->body[0], outputs, ranges);
  };
  int64_t low = 1, high = iterations;  // the first iteration behind the work is in [low, high]
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
    if (s->kind != StmtKind::loop || s->loop_kind != LoopKind::parallel) return;
    const auto iterations = as_const(s->extent);
    double here = static_cast<double>(cores);
    if (iterations) {  // each core has as many iterations next to each other
      const int64_t work = iterations_with_work(kernel, s, *iterations);
      here = static_cast<double>(work) /
             static_cast<double>(std::min(work, (*iterations + cores - 1) / cores));
    }
    least = least == 0 ? here : std::min(least, here);
  });
  return std::max(1.0, least);
}

}  // namespace tw
