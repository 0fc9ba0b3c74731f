// specialize i0 1 n -> one
//   for i0 in (n + 3) // 4 {                      if n == 1 {
//     for r in 4 { c: c[r] = x[min(..)] }           c.one: c[0] = x[0]
//     for i1 in 4 { if i0 * 4 + i1 < n {    ->      y.one: y[0] = c[0]
//       y: y[i0 * 4 + i1] = c[i1] } }             }
//   }                                             if !(n == 1) { .. as before .. }
//
// The copy is for runs in which the symbols have that value. In it, guards of the loops become
// their extents, and a loop ends where nobody reads the results of further iterations. Legal: a
// serial loop without tokens. No loop inside is bound or a virtual thread.
#include <algorithm>
#include <map>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

// The copied loop while its inner loops get shorter
class Shortened {
 public:
  Shortened(const Kernel& kernel, std::span<const Stmt> path, const Stmt& copy)
      : kernel_(kernel), outer_(ranges_of(kernel, path.first(path.size() - 1))) {
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const BufferId id(static_cast<int>(i));
      if (kernel.buffer(id).role == BufferRole::temp &&
          accesses(kernel.body, id) == accesses(path.back(), id))
        own_.push_back(id);
    }
    copy_ = simplify_tree(copy, outer_);
  }

  Stmt run() {
    do {
      changed_ = false;
      copy_ = without_guards(copy_);
      copy_ = simplify_tree(without_unread(copy_), outer_);
    } while (changed_);
    return copy_;
  }

 private:
  static int accesses(const Stmt& root, BufferId buffer) {
    int count = 0;
    for (const StoreRef& store : stores_of(root)) count += store->buffer == buffer;
    visit_loads(root, [&](const expr::Load& load, std::span<const Stmt>) {
      count += load.buffer == buffer;
    });
    return count;
  }

  Stmt with_extent(const stmt::Loop& loop, int64_t extent, const Stmt& body) {
    changed_ = true;
    if (extent == 1) return substitute(body, loop.var, Expr(0));
    stmt::Loop shorter = loop;
    shorter.extent = Expr(extent);
    shorter.body = body;
    return make_stmt(std::move(shorter));
  }

  // Rewrites for i in 4 { if i < 2 { .. } } to for i in 2 { .. }.
  Stmt without_guards(const Stmt& root) {
    return rewrite(root, [&](const Stmt& s) -> Stmt {
      const auto* loop = as<stmt::Loop>(s);
      const auto* guard = loop ? as<stmt::If>(loop->body) : nullptr;
      if (!guard || !may_end_sooner(*loop)) return nullptr;
      const auto* below = as_binary(guard->condition, BinaryOp::lt);
      if (!below || !is_var(below->a, loop->var)) return nullptr;
      const auto end = as_const(below->b);
      if (!end || *end < 1 || *end >= *as_const(loop->extent)) return nullptr;
      return with_extent(*loop, *end, guard->body);
    });
  }

  // For each dimension of the specialized loop's own buffers, the end of the reads outside loop
  // `loop`
  std::map<int, std::vector<int64_t>> reads_outside(const std::string& loop) const {
    std::map<int, std::vector<int64_t>> reads;
    for (const BufferId id : own_) reads[id.index].assign(kernel_.buffer(id).shape.size(), 0);
    visit_loads(copy_, [&](const expr::Load& load, std::span<const Stmt> scope) {
      const auto found = reads.find(load.buffer.index);
      const bool inside = std::ranges::any_of(scope, [&](const Stmt& s) {
        const auto* around = as<stmt::Loop>(s);
        return around && around->var == loop;
      });
      if (found == reads.end() || inside) return;
      Ranges ranges = outer_;
      add_ranges(ranges, scope);
      for (size_t d = 0; d < load.indices.size(); ++d) {
        const Bounds bounds = constant_bounds(load.indices[d], ranges);
        found->second[d] = std::max(found->second[d], bounds.max ? *bounds.max + 1 : INT64_MAX);
      }
    });
    return reads;
  }

  // Rewrites for r in 4 { c[r] = .. } to c[0] = .. if only c[0] is read.
  Stmt without_unread(const Stmt& s) {
    if (const auto* sequence = as<stmt::Sequence>(s)) {
      std::vector<Stmt> body;
      for (const Stmt& child : sequence->body) body.push_back(without_unread(child));
      return make_sequence(std::move(body));
    }
    if (const auto* guard = as<stmt::If>(s)) return with_body(s, without_unread(guard->body));
    const auto* loop = as<stmt::Loop>(s);
    if (!loop) return s;  // an instruction needs all of its block
    Stmt body = without_unread(loop->body);
    const int64_t end = may_end_sooner(*loop) ? read_end(*loop) : INT64_MAX;
    if (end < as_const(loop->extent).value_or(0)) return with_extent(*loop, end, body);
    return with_body(s, std::move(body));
  }

  // The smallest end of the loop after which no iteration stores what others read. Iterations of a
  // spatial loop are independent: none reads another one's stores.
  int64_t read_end(const stmt::Loop& loop) const {
    int64_t end = 1;
    const auto reads = reads_outside(loop.var);
    Ranges ranges = outer_;
    visit(copy_, [&](const Stmt& s) {
      if (const auto* any = as<stmt::Loop>(s)) add_range(ranges, *any);
    });
    for (const StoreRef& store : stores_of(loop.body)) {
      int64_t needed = INT64_MAX;
      if (const auto found = reads.find(store->buffer.index); found != reads.end())
        for (size_t d = 0; d < store->indices.size(); ++d)
          needed = std::min(needed, found->second[d] == 0 ? 0
                                                          : end_of(store->indices[d], loop.var,
                                                                   found->second[d], ranges));
      end = std::max(end, needed);
    }
    return end;
  }

  // The end of the iterations whose index is below `bound`
  static int64_t end_of(const Expr& index, const std::string& loop, int64_t bound,
                        const Ranges& ranges) {
    const auto term = linear_in(index, loop);
    if (!term || term->coefficient < 1 || bound == INT64_MAX) return INT64_MAX;
    const Bounds rest = constant_bounds(term->rest, ranges);
    if (!rest.min || *rest.min < 0) return INT64_MAX;
    return (std::max<int64_t>(0, bound - *rest.min) + term->coefficient - 1) / term->coefficient;
  }

  static bool may_end_sooner(const stmt::Loop& loop) {
    return loop.role == AxisRole::spatial && as_const(loop.extent) &&
           (loop.kind == LoopKind::serial || loop.kind == LoopKind::unroll);
  }

  const Kernel& kernel_;
  Ranges outer_;
  std::vector<BufferId> own_;
  Stmt copy_;
  bool changed_ = false;
};

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Specialize& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  TW_TRY(check_no_tokens(kernel, loop));
  TW_TRY(check_suffix(kernel, loop, path.back(), s.suffix));
  Stmt copy = renamed(path.back(), s.suffix);
  Expr holds;
  for (const std::string& symbol : s.symbols) {
    if (std::ranges::find(kernel.symbols, symbol) == kernel.symbols.end())
      return illegal("the kernel has no symbol '{0}': {1}", symbol, it_has(kernel.symbols));
    if (std::ranges::count(s.symbols, symbol) > 1)
      return illegal("symbol '{0}' is named twice", symbol);
    if (s.value < least_of(symbol)) return illegal("symbol '{0}' is never {1}", symbol, s.value);
    const Expr equal = binary(BinaryOp::eq, var(symbol), Expr(s.value));
    holds = holds.defined() ? binary(BinaryOp::logical_and, holds, equal) : equal;
    copy = substitute(copy, symbol, Expr(s.value));
  }
  copy = Shortened(kernel, path, copy).run();
  if (const auto* single = as<stmt::Loop>(copy); single && is_const(single->extent, 1))
    copy = substitute(single->body, single->var, Expr(0));
  return with_replaced(kernel, path,
                       make_sequence({make_if(holds, copy),
                                      make_if(unary(UnaryOp::logical_not, holds), path.back())}));
}

}  // namespace tw::sched
