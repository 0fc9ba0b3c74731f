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
  if (e.defined())
    visit(e, [&](const Expr& part) {
      count += part->kind != ExprKind::var && part->kind != ExprKind::int_imm;
    });
  return count;
}

int64_t written_out(const Stmt& s, int64_t lanes) {
  if (s->kind == StmtKind::store) return 1 + operations(s->value) + operations(s->where);
  int64_t count = operations(s->condition);
  for (const Stmt& child : s->body) count = plus(count, written_out(child, lanes));
  if (s->kind != StmtKind::loop) return count;
  const int64_t extent = as_const(s->extent).value_or(1);
  if (s->loop_kind == LoopKind::unroll) return times(count, extent);
  return s->loop_kind == LoopKind::vector ? times(count, (extent + lanes - 1) / lanes) : count;
}

}  // namespace

int64_t written_out_operations(const Kernel& kernel, int64_t lanes) {
  return written_out(kernel.body, std::max<int64_t>(lanes, 1));
}

int64_t most_operations(const Kernel& usual, int64_t lanes) {
  return std::max(kLeastOperations, written_out_operations(usual, lanes) * 3 / 2);
}

}  // namespace tw
