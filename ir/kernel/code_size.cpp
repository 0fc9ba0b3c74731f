#include "ir/kernel/code_size.h"

#include <algorithm>
#include <limits>

namespace tw {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;

int64_t times(int64_t a, int64_t b) { return a > 0 && b > kMost / a ? kMost : a * b; }
int64_t plus(int64_t a, int64_t b) { return std::min(a + b, kMost); }

int64_t operations(const Expr& e) {
  int64_t count = 0;
  if (e.defined()) visit(e, [&](const Expr& part) { count += !is<expr::Var, expr::Int>(part); });
  return count;
}

int64_t written_out(const Stmt& s, int64_t lanes) {
  if (const auto* store = as<stmt::Store>(s))
    return 1 + operations(store->value) + operations(store->where);
  const auto* guard = as<stmt::If>(s);
  int64_t count = guard ? operations(guard->condition) : 0;
  for (const Stmt& child : children(s)) count = plus(count, written_out(child, lanes));
  const auto* loop = as<stmt::Loop>(s);
  if (!loop) return count;
  const int64_t extent = as_const(loop->extent).value_or(1);
  if (loop->kind == LoopKind::unroll) return times(count, extent);
  return loop->kind == LoopKind::vector ? times(count, (extent + lanes - 1) / lanes) : count;
}

}  // namespace

int64_t written_out_operations(const Kernel& kernel, int64_t lanes) {
  return written_out(kernel.body, std::max<int64_t>(lanes, 1));
}

int64_t most_operations(const Kernel& usual, int64_t lanes) {
  return std::max(kLeastOperations, written_out_operations(usual, lanes) * 3 / 2);
}

}  // namespace tw
