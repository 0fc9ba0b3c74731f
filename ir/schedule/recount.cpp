// recount c left 0 -> e constant                temp e: i32[10] constant
//                                               for e_j in 10 { for e_k in 4 reduce {
//                                                 e: e[e_j] += i32(w[e_k, e_j]) * 7 init 0
//                                               } }
//   for i in 8 { for j in 10 {                  for i in 8 { for j in 10 {
//     for k in 4 reduce {                         for k in 4 reduce {
//       c: c[i, j] += (i32(x[i, k]) - 7)    ->      c: c[i, j] += i32(x[i, k])
//                     * i32(w[k, j])                              * i32(w[k, j])
//     }                                           }
//   } }                                         } }
//   y: y[i, j] = f32(c[i, j])                   y: y[i, j] = f32(c[i, j] - e[j])
//
// The factor counts from another zero, which instructions may want. The sums are then too large by
// the difference of the zeros times the sum of the other factor: the new stage, which all readers
// subtract. Integers wrap, so this is exact. A condition on the sums holds for the new stage too:
// points of a loop at which it always holds share one excess, and the points in front of them and
// behind them have one each.
//
// The zero so far may be known to a run only, as i32(z[]). The new stage then makes the sums of the
// other factor, and the readers multiply them by the difference of the zeros. The new stage stands
// in front of the scan loops around the sums, but inside of those in which something writes what it
// reads.
//
// Legal: sums of integers, as lowered, into a temp. The factor is a value less another one that is
// the same for all points, or a value. The other factor depends on all reduce loops. A loop on
// which the condition alone depends has a constant extent. All that reads the sums stands behind
// them, in one iteration of the scan loops, and nothing there writes what a zero reads.
#include <algorithm>
#include <optional>
#include <set>

#include "ir/kernel/guards.h"
#include "ir/schedule/factor.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

constexpr int64_t kMostEdges = 1 << 12;  // limit of the points of a loop with an excess each

Error check_sums(const Kernel& kernel, const LoweredStage& stage, const std::string& label) {
  const stmt::Store& store = *stage.store;
  const Buffer& buffer = kernel.buffer(store.buffer);
  if (store.combiner != Combiner::add || !is_int(buffer.dtype) || buffer.role != BufferRole::temp)
    return illegal("stage '{0}' does not sum integers into a temp", label);
  for (const StoreRef& other : stores_of(kernel.body))
    if (other->label != label && other->buffer == store.buffer)
      return illegal("stage '{0}' writes '{1}' too", other->label, buffer.name);
  return Error::success();
}

// The points of a loop at which the condition does not always hold: the first and the last ones.
// The points between them are alike and count as one, behind the first ones.
struct Edges {
  int64_t extent = 1, before = 0, after = 0;
  int64_t points() const { return before + 1 + after; }
  Expr number_of(const Expr& point) const {
    if (points() == extent) return point;
    const Expr number = min(point, Expr(before));
    return after == 0 ? number : number + max(Expr(0), point - Expr(extent - after - 1));
  }
  Expr point_of(const Expr& number) const {
    if (points() == extent || after == 0) return number;
    return select(le(number, Expr(before)), number, number + Expr(extent - points()));
  }
};

// nullopt: the loop's extent is free, or there are too many points.
std::optional<Edges> edges_of(const Expr& where, const LoopRef& loop, const Ranges& ranges) {
  const std::optional<int64_t> extent = as_const(loop->extent);
  if (!extent) return std::nullopt;
  Expr own;
  for (const Expr& condition : conjuncts(where))
    if (uses_var(condition, loop->var)) own = logical_and(own, condition);
  const auto holds = [&](int64_t first, int64_t last) {
    Ranges at = ranges;
    at[loop->var] = {Expr(first), Expr(last)};
    return can_prove(own, at);
  };
  const int64_t most = std::min(*extent, kMostEdges);
  Edges edges{*extent};
  while (edges.before < most && !holds(edges.before, edges.before)) ++edges.before;
  while (edges.before + edges.after < most &&
         !holds(*extent - 1 - edges.after, *extent - 1 - edges.after))
    ++edges.after;
  const int64_t last = *extent - 1 - edges.after;
  if (edges.before > last || !holds(edges.before, last)) edges = {*extent, *extent - 1, 0};
  return edges.points() <= kMostEdges ? std::optional(edges) : std::nullopt;
}

// The new stage: the sums of the other factor, times the difference of the zeros
struct Excess {
  struct Dim {
    size_t of;  // the dimension of the stage's buffer
    LoopRef loop;
    std::optional<Edges> edges;  // none: each point has its own excess
    Expr extent() const { return edges ? Expr(edges->points()) : loop->extent; }
  };
  std::vector<Dim> dims;
  std::vector<LoopRef> reduce;
};

Expected<Excess> excess_of(const LoweredStage& stage, const Expr& other, const std::string& label,
                           const Ranges& ranges) {
  Excess excess;
  const Expr& where = stage.store->where;
  for (size_t dim = 0; dim < stage.loop_of_dim.size(); ++dim) {
    if (stage.loop_of_dim[dim] < 0) continue;
    const LoopRef& loop = stage.spatial[static_cast<size_t>(stage.loop_of_dim[dim])];
    if (uses_var(other, loop->var)) {
      excess.dims.push_back({dim, loop, std::nullopt});
    } else if (where.defined() && uses_var(where, loop->var)) {
      const std::optional<Edges> edges = edges_of(where, loop, ranges);
      if (!edges)
        return illegal(
            "the condition of stage '{0}' does not tell at which points of '{1}' it holds", label,
            loop->var);
      if (edges->points() > 1) excess.dims.push_back({dim, loop, edges});
    }
  }
  for (const LoopRef& loop : stage.reduce) {
    if (uses_var(other, loop->var)) excess.reduce.push_back(loop);
    else if (!is_const(loop->extent, 1))
      return illegal("the other factor of stage '{0}' does not depend on loop '{1}'", label,
                     loop->var);
  }
  return excess;
}

Stmt excess_nest(const Excess& excess, const std::string& name, BufferId buffer, Expr sum,
                 Expr where) {
  const auto renamed_to = [&](const LoopRef& loop, const Expr& value) {
    sum = substitute(sum, loop->var, value);
    if (where.defined()) where = substitute(where, loop->var, value);
  };
  std::vector<Expr> at;
  for (const Excess::Dim& dim : excess.dims) {
    at.push_back(var(axis_name(name, dim.loop->var)));
    renamed_to(dim.loop, dim.edges ? dim.edges->point_of(at.back()) : at.back());
  }
  for (const LoopRef& loop : excess.reduce) renamed_to(loop, var(axis_name(name, loop->var)));
  const Expr zero = imm(0, sum.type());
  Stmt nest = make_store({.label = name,
                          .buffer = buffer,
                          .indices = std::move(at),
                          .value = std::move(sum),
                          .combiner = Combiner::add,
                          .where = std::move(where),
                          .init = zero});
  for (auto loop = excess.reduce.rbegin(); loop != excess.reduce.rend(); ++loop)
    nest = make_loop(axis_name(name, (*loop)->var), (*loop)->extent, nest, LoopKind::serial,
                     AxisRole::reduce);
  for (auto dim = excess.dims.rbegin(); dim != excess.dims.rend(); ++dim)
    nest = make_loop(axis_name(name, dim->loop->var), dim->extent(), nest);
  return nest;
}

// A factor that counts from a zero which is the same at all points of the stage
struct CountedFactor {
  Expr value, zero;
};

CountedFactor counted_factor(const Expr& factor, const LoweredStage& stage) {
  const Counted constant = counted(factor);
  const auto* difference = as_binary(factor, BinaryOp::sub);
  if (constant.zero != 0 || !difference)
    return {constant.value, int_imm(constant.zero, factor.type())};
  for (const std::vector<LoopRef>& loops : {stage.spatial, stage.reduce})
    for (const LoopRef& loop : loops)
      if (uses_var(difference->b, loop->var)) return {factor, int_imm(0, factor.type())};
  return {difference->a, difference->b};
}

// Requires that the zero is the same where the sums are read.
Error check_zero(const Kernel& kernel, const LoweredStage& stage, const Expr& zero) {
  const stmt::Store& store = *stage.store;
  const Stmt& around = stage.around.empty() ? kernel.body : children(stage.around.back())[0];
  const std::string& sums = kernel.buffer(store.buffer).name;
  if (!read_behind_only(kernel, stage))
    return illegal("'{0}' is read where the zero of stage '{1}' may be another one", sums,
                   store.label);
  std::span<const Stmt> rest = statements(around);
  while (rest.front() != stage.nest) rest = rest.subspan(1);
  Error error = Error::success();
  visit(zero, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    for (const Stmt& s : rest)
      if (!error && load && writes(s, load->buffer))
        error = illegal("'{0}', from which stage '{1}' counts, is written behind it",
                        kernel.buffer(load->buffer).name, store.label);
  });
  return error;
}

// The expression at the first point of some of the stage's loops
template <class Some>
Expr at_first_point(const LoweredStage& stage, Expr e, Some some) {
  for (const std::vector<LoopRef>& loops : {stage.spatial, stage.reduce})
    for (const LoopRef& loop : loops)
      if (e.defined() && some(loop)) e = substitute(e, loop->var, Expr(0));
  return e;
}

// The condition without the loops that the excess does not have: one of their points serves all.
Expr shared_condition(const LoweredStage& stage, const Excess& excess) {
  std::set<std::string> kept;
  for (const Excess::Dim& dim : excess.dims) kept.insert(dim.loop->var);
  for (const LoopRef& loop : excess.reduce) kept.insert(loop->var);
  return at_first_point(stage, stage.store->where,
                        [&](const LoopRef& loop) { return !kept.contains(loop->var); });
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Recount& s) {
  TW_TRY(check_new_stage(kernel, s.name));
  TW_ASSIGN(const LoweredStage stage, lowered_stage(kernel, s.stage, true));
  TW_TRY(check_sums(kernel, stage, s.stage));
  const stmt::Store& store = *stage.store;
  const Factor side = s.factor == Factor::left ? Factor::right : Factor::left;
  // A loop with one iteration may have no dimension in the excess.
  const Expr factor = factor_of(store.value, s.factor),
             other = at_first_point(stage, factor_of(store.value, side),
                                    [](const LoopRef& loop) { return is_const(loop->extent, 1); });
  if (!factor.defined()) return illegal("the value of stage '{0}' is not a product", s.stage);
  const CountedFactor now = counted_factor(factor, stage);
  const std::optional<int64_t> known = as_const(now.zero);
  if (known && (*known < -kMostStepNumber || *known > kMostStepNumber))
    return illegal("the zeros {0} and {1} are too far apart", *known, s.zero);
  if (known == s.zero) return illegal("the factor counts from {0} already", s.zero);
  if (!known) TW_TRY(check_zero(kernel, stage, now.zero));
  const std::vector<Stmt> path = find_path(kernel.body, stage.store);
  TW_ASSIGN(const Excess excess, excess_of(stage, other, s.stage, ranges_of(kernel, path)));
  for (const Excess::Dim& dim : excess.dims)
    TW_TRY(check_new_loop(kernel, axis_name(s.name, dim.loop->var)));
  for (const LoopRef& loop : excess.reduce)
    TW_TRY(check_new_loop(kernel, axis_name(s.name, loop->var)));

  Kernel out = kernel;
  const DType type = factor.type();
  const BufferId buffer{static_cast<int32_t>(kernel.buffers.size())};
  out.buffers.push_back({s.name, type, {}, BufferRole::temp, s.scope});
  for (const Excess::Dim& dim : excess.dims) out.buffers.back().shape.push_back(dim.extent());
  const Expr where = shared_condition(stage, excess),
             by = known ? int_imm(*known - s.zero, type) : less(now.zero, s.zero);
  const Stmt nest = excess_nest(excess, s.name, buffer, known ? other * by : other, where);
  const size_t inside = std::max(scans_around(path, other), scans_around(path, where));
  if (inside > 0 && !read_behind_only(kernel, stage))
    return illegal("'{0}' is read in other iterations than those that make its excess",
                   kernel.buffer(store.buffer).name);

  stmt::Store recounted = store;
  recounted.value = with_factor(store.value, s.factor, less(now.value, s.zero));
  const Stmt& place = path[inside];
  const Stmt sums = replace(place, stage.store, make_store(std::move(recounted)));
  out.body = replace(kernel.body, place, make_sequence({nest, sums}));
  out.body = rewrite_exprs(out.body, [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      const auto* read = as<expr::Load>(e);
      if (!read || read->buffer != store.buffer) return Expr();
      std::vector<Expr> at;
      for (const Excess::Dim& dim : excess.dims) {
        const Expr& point = read->indices[dim.of];
        at.push_back(dim.edges ? dim.edges->number_of(point) : point);
      }
      const Expr amount = load(buffer, type, std::move(at));
      return e - (known ? amount : by * amount);
    });
  });
  out.body = simplify_tree(out.body, ranges_of(out, {}));
  return out;
}

}  // namespace tw::sched
