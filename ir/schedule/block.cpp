// block y 1 4 -> l
//   y: out f32[2, 6, 5]                     y: out f32[2, 2, 5, 4]
//   for n in 2 { for c in 6 {               for n in 2 { for c in 2 { for s in 5 { for l in 4 {
//     for s in 5 {                    ->      y: y[n, c, s, l] =
//       y: y[n, c, s] = x[n, c, s]              select(c*4+l < 6, x[n, c*4+l, s], 0)
//   } } }                                   } } } }
//
// Cuts a dimension of a buffer into blocks, whose elements become the last dimension. A parameter
// then comes from the caller in that layout. Stages that write the buffer get a loop over a block,
// inside their other spatial loops. Elements that only fill the last block are 0 in a parameter. In
// a temp, where nobody reads them, they hold anything if all loads stay inside of their buffers.
// Legal: each stage that writes the buffer has a perfect nest of serial loops, at the top or in a
// scan loop. Its index of the dimension is a loop's variable, which no other index uses, plus a
// multiple of the factor. Its points fill whole blocks, or reach the end of the dimension.
#include <algorithm>

#include "ir/schedule/filling.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

// A nest that writes the buffer
struct WritingNest {
  std::vector<Stmt> path;  // loops of the stage outside in, then the store
  size_t spatial = 0;      // position behind the last spatial loop
  LoopRef cut;             // loop of the dimension; null: it has one point
  int64_t start = 0;       // first point of that loop
};

class Blocking {
 public:
  Blocking(const Kernel& kernel, const step::Block& s, BufferId id)
      : kernel_(kernel), s_(s), id_(id), dim_(static_cast<size_t>(s.dim)), out_(kernel) {}

  Expected<Kernel> run() {
    const std::vector<StoreRef> stores = stores_of(kernel_.body);
    std::vector<StoreRef> writers;
    std::ranges::copy_if(stores, std::back_inserter(writers),
                         [&](const StoreRef& store) { return store->buffer == id_; });
    if (writers.size() != s_.loops.size())
      return illegal("'{0}' is written by {1} stages, but {2} loops are named", s_.buffer,
                     writers.size(), s_.loops.size());
    std::vector<Expr>& shape = out_.buffer(id_).shape;
    shape[dim_] = simplify(ceil_div(extent(), s_.factor), ranges_of(kernel_, {}));
    shape.emplace_back(s_.factor);
    map_accesses_to_blocks();
    for (size_t i = 0; i < writers.size(); ++i) TW_TRY(cut(writers[i]->label, s_.loops[i]));
    simplify_uses();
    return std::move(out_);
  }

 private:
  const Expr& extent() const { return kernel_.buffer(id_).shape[dim_]; }

  void map_accesses_to_blocks() {
    out_.body = map_accesses(kernel_.body, id_, [&](const std::vector<Expr>& indices) {
      std::vector<Expr> mapped = indices;
      mapped[dim_] = floor_div(indices[dim_], s_.factor);
      mapped.push_back(floor_mod(indices[dim_], s_.factor));
      return mapped;
    });
  }

  // Other statements are as simple as they were.
  void simplify_uses() {
    std::vector<Stmt> body;
    for (const Stmt& s : statements(out_.body))
      body.push_back(reads(s, id_) || writes(s, id_) ? simplify_tree(s, ranges_of(kernel_, {}))
                                                     : s);
    out_.body = make_sequence(std::move(body));
  }

  Expected<WritingNest> nest_of(const std::string& label) const {
    TW_ASSIGN(const std::vector<Stmt> whole, stage_path(kernel_, label));
    const auto is_scan = [](const Stmt& around) {
      const auto* loop = as<stmt::Loop>(around);
      return loop && loop->role == AxisRole::scan;
    };
    size_t first = 0;
    while (is<stmt::Sequence>(whole[first]) || is_scan(whole[first])) ++first;
    WritingNest nest;
    nest.path.assign(whole.begin() + static_cast<std::ptrdiff_t>(first), whole.end());
    const auto& store = get<stmt::Store>(nest.path.back());
    Expr start = store.indices[dim_];
    for (size_t i = 0; i + 1 < nest.path.size(); ++i) {
      const auto* loop = as<stmt::Loop>(nest.path[i]);
      if (!loop || loop->kind != LoopKind::serial || loop->body != nest.path[i + 1])
        return illegal("the nest of stage '{0}' is not a perfect nest of serial loops", label);
      if (loop->role == AxisRole::spatial) nest.spatial = i + 1;
      if (!uses_var(start, loop->var)) continue;
      const auto term = linear_in(start, loop->var);
      if (nest.cut || loop->role != AxisRole::spatial || !term || term->coefficient != 1)
        return illegal("stage '{0}' does not store at a loop's variable along dimension {1}", label,
                       s_.dim);
      nest.cut = LoopRef(nest.path[i]);
      start = term->rest;
    }
    for (size_t d = 0; nest.cut && d < store.indices.size(); ++d)
      if (d != dim_ && uses_var(store.indices[d], nest.cut->var))
        return illegal("stage '{0}' stores at loop '{1}' along another dimension of '{2}' too",
                       label, nest.cut->var, s_.buffer);
    const std::optional<int64_t> known = as_const(simplify(start, {}));
    if (!known || *known % s_.factor != 0)
      return illegal("stage '{0}' begins inside a block of '{1}'", label, s_.buffer);
    nest.start = *known;
    return nest;
  }

  // True: the added points read nothing outside of the buffers, and nothing that is not written.
  // Indices that do not use these variables are as they were.
  bool reads_inside(const stmt::Store& store, const std::vector<std::string>& variables,
                    const Ranges& ranges) const {
    bool inside = true;
    const auto look = [&](const Expr& whole) {
      if (!whole.defined()) return;
      visit(whole, [&](const Expr& e) {
        const auto* load = as<expr::Load>(e);
        for (size_t d = 0; load && inside && d < load->indices.size(); ++d) {
          if (std::ranges::none_of(variables, [&](const std::string& name) {
                return uses_var(load->indices[d], name);
              }))
            continue;
          const Expr index = simplify(load->indices[d], ranges);
          inside = can_prove(le(Expr(0), index), ranges) &&
                   can_prove(lt(index, out_.buffer(load->buffer).shape[d]), ranges) &&
                   is_whole(out_, load->buffer);
        }
      });
    };
    look(store.value), look(store.where);
    return inside;
  }

  Error cut(const std::string& label, const std::string& lane) {
    TW_TRY(check_new_loop(out_, lane));
    TW_ASSIGN(const WritingNest nest, nest_of(label));
    const Expr points = nest.cut ? nest.cut->extent : Expr(1), factor(s_.factor);
    const Ranges symbols = ranges_of(kernel_, {});
    const bool whole = is_const(simplify(floor_mod(points, factor), symbols), 0);
    if (!whole && !is_const(simplify(extent() - points - Expr(nest.start), symbols), 0))
      return illegal("stage '{0}' fills a part of a block of '{1}'", label, s_.buffer);
    // The accesses of the body are mapped already, so the statements are looked up again.
    TW_ASSIGN(const std::vector<Stmt> path, stage_path(out_, label));
    const std::span<const Stmt> now(path.end() - static_cast<std::ptrdiff_t>(nest.path.size()),
                                    path.end());
    const Expr point = nest.cut ? var(nest.cut->var) * factor + var(lane) : var(lane);
    stmt::Store store = get<stmt::Store>(now.back());
    const auto at_point = [&](const Expr& e) {
      return nest.cut ? substitute(e, nest.cut->var, point) : e;
    };
    for (Expr& index : store.indices) index = at_point(index);
    if (!nest.cut) store.indices.back() = var(lane);
    store.value = at_point(store.value);
    if (store.where.defined()) store.where = at_point(store.where);
    Ranges ranges = ranges_of(out_, path);
    if (nest.cut) ranges[nest.cut->var] = {Expr(0), ceil_div(points, s_.factor) - Expr(1)};
    ranges[lane] = {Expr(0), factor - Expr(1)};
    std::vector<std::string> variables = {lane};
    if (nest.cut) variables.push_back(nest.cut->var);
    if (!whole) TW_TRY(fill(store, lt(point, points), variables, ranges));
    Stmt body = make_store(std::move(store));
    for (size_t i = now.size() - 1; i-- > 0;) {
      const auto& loop = get<stmt::Loop>(now[i]);
      if (i + 1 == nest.spatial) body = make_loop(lane, factor, std::move(body));
      const bool is_cut = nest.cut && loop.var == nest.cut->var;
      body = make_loop(loop.var, is_cut ? ceil_div(points, s_.factor) : loop.extent,
                       std::move(body), loop.kind, loop.role);
    }
    if (nest.spatial == 0) body = make_loop(lane, factor, std::move(body));
    out_.body = replace(out_.body, now.front(), body);
    return Error::success();
  }

  // Decides what elements hold that only fill the last block.
  Error fill(stmt::Store& store, const Expr& inside, const std::vector<std::string>& variables,
             const Ranges& ranges) const {
    const bool temp = kernel_.buffer(id_).role == BufferRole::temp;
    if (temp && reads_inside(store, variables, ranges)) return Error::success();
    const Expr zero = imm(0, store.value.type());
    if (store.combiner == Combiner::none && !store.where.defined()) {
      store.value = select(inside, store.value, zero);
      return Error::success();
    }
    if (!temp && !(store.init.defined() && is_zero(store.init)))
      return illegal("stage '{0}' leaves no zeros in the last block of '{1}'", store.label,
                     s_.buffer);
    store.where = logical_and(inside, store.where);
    return Error::success();
  }

  static bool is_zero(const Expr& e) {
    const auto* real = as<expr::Float>(e);
    return real ? real->value == 0 : is_const(e, 0);
  }

  const Kernel& kernel_;
  const step::Block& s_;
  BufferId id_;
  size_t dim_;
  Kernel out_;
};

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Block& s) {
  TW_ASSIGN(const BufferId id, buffer_named(kernel, s.buffer));
  if (s.dim < 0 || s.dim >= static_cast<int64_t>(kernel.buffer(id).shape.size()))
    return illegal("'{0}' has no dimension {1}: it has {2}, counted from 0", s.buffer, s.dim,
                   kernel.buffer(id).shape.size());
  if (s.factor < 1) return illegal("the factor {0} for '{1}' is not positive", s.factor, s.buffer);
  return Blocking(kernel, s, id).run();
}

}  // namespace tw::sched
