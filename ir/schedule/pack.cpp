// pack c right -> wp constant [j // 16, k, j % 16] wj wk wl
//                                               temp wp: f32[3, 64, 16] constant
//                                               for wj in 3 { for wk in 64 { for wl in 16 {
//                                                 wp: wp[wj, wk, wl] = select(wj*16+wl < 40,
//                                                                             w[wk, wj*16+wl], 0)
//                                               } } }
//   for i in 8 { for j in 40 {                  for i in 8 { for j in 40 {
//     for k in 64 reduce {                  ->    for k in 64 reduce {
//       c: c[i, j] += x[i, k] * w[k, j]             c: c[i, j] += x[i, k] * wp[j // 16, k, j % 16]
//     }                                           }
//   } }                                         } }
//
// A factor of the stage's sums is computed beforehand, into a temp with a place for each point of
// the loops on which it depends. A cast that widens it and a constant that is subtracted stay in
// the sums. Each loop is a dimension of the temp, or is cut in a quotient and a remainder by one
// constant, and these may be cut again. Parts are filled up to whole ones with numbers that are
// multiplied as 0. Two parts may share an index, as in i % 4 * 16 + j, and an index may be 0. Loops
// of a sliding window are one dimension: [i * 2 + k] has a place for each element that
// x[i * 2 + k] may be. One of the constants is 1, or there are two without a common divisor.
//
// The new stage stands in front of the scan loops around the sums. It is inside of those in which
// something writes what the factor reads, and of other loops around the sums and more stages. It
// then makes the temp in each iteration.
//
// Legal: the stage is as lowered, its nest writes nothing that the factor reads, and the map names
// all of each loop on which the factor depends, but for scan loops around the new stage. If the
// stage's condition depends on other loops, places hold 0 whose elements do not exist. Scope
// constant needs a factor of one constant parameter, and constant extents: the new stage then runs
// while the model is compiled.
#include <algorithm>
#include <set>

#include "ir/kernel/bounds.h"
#include "ir/schedule/factor.h"
#include "ir/schedule/filling.h"
#include "ir/schedule/pack_map.h"

namespace tw::sched {

namespace {

// The buffers that the expression reads
std::set<int32_t> sources_of(const Expr& e) {
  std::set<int32_t> sources;
  visit(e, [&](const Expr& n) {
    if (const auto* load = as<expr::Load>(n)) sources.insert(load->buffer.index);
  });
  return sources;
}

Error check_constant(const Kernel& kernel, const Expr& factor, const std::vector<Expr>& shape,
                     const std::string& name) {
  const std::set<int32_t> sources = sources_of(factor);
  if (sources.size() != 1)
    return illegal("the factor reads {0} buffers: '{1}' cannot be made while compiling",
                   sources.size(), name);
  const Buffer& source = kernel.buffer(BufferId{*sources.begin()});
  if (source.role != BufferRole::constant)
    return illegal("'{0}' is no constant: '{1}' cannot be made while compiling", source.name, name);
  const auto known = [](const Expr& extent) { return as_const(extent).has_value(); };
  if (!std::ranges::all_of(source.shape, known) || !std::ranges::all_of(shape, known))
    return illegal("the shape of '{0}' is not constant: it cannot be made while compiling", name);
  return Error::success();
}

// The kernel with another temp, in front of the stage's own
Kernel with_temp(const Kernel& kernel, const stmt::Store& store, Buffer temp) {
  Kernel out = kernel;
  const bool last = kernel.buffer(store.buffer).role != BufferRole::temp;
  const auto place = last ? static_cast<int32_t>(kernel.buffers.size()) : store.buffer.index;
  out.buffers.insert(out.buffers.begin() + place, std::move(temp));
  if (!last)
    out.body = with_buffers(kernel.body, [&](BufferId id) {
      return BufferId{id.index < place ? id.index : id.index + 1};
    });
  return out;
}

// The condition under which the element's loads are inside of their buffers
Expr loads_inside(const Kernel& kernel, const Expr& element) {
  Expr inside;
  visit(element, [&](const Expr& e) {
    const auto* read = as<expr::Load>(e);
    for (size_t dim = 0; read && dim < read->indices.size(); ++dim) {
      const Expr& at = read->indices[dim];
      inside = logical_and(
          inside, logical_and(le(Expr(0), at), lt(at, kernel.buffer(read->buffer).shape[dim])));
    }
  });
  return inside;
}

// The nest of the new stage in these scan loops. zero: the number that is multiplied as 0. guarded:
// places hold it that no point reads, as their elements do not exist.
Expected<Stmt> filling_nest(const Kernel& out, const step::Pack& s, const PackMap& map,
                            int64_t zero, BufferId packed, std::span<const Stmt> scans,
                            bool guarded) {
  const std::vector<Expr>& shape = out.buffer(packed).shape;
  Ranges ranges = ranges_of(out, scans);
  std::vector<Expr> at;
  for (size_t i = 0; i < s.loops.size(); ++i) {
    TW_TRY(check_new_loop(out, s.loops[i]));
    if (std::ranges::count(s.loops, s.loops[i]) > 1)
      return illegal("two new loops are called '{0}'", s.loops[i]);
    ranges[s.loops[i]] = {Expr(0), simplify(shape[i] - Expr(1), ranges)};
    at.push_back(simplify(var(s.loops[i]), ranges));
  }
  const Expr element = map.element();
  const DType type = element.type();
  const Expr filling = is_int(type) ? int_imm(zero, type) : imm(0, type);
  Expr inside = map.inside();
  if (guarded) inside = logical_and(inside, loads_inside(out, element));
  const Expr value = inside.defined() ? filled(inside, element, filling, ranges) : element;
  Stmt nest = make_store(
      {.label = s.name, .buffer = packed, .indices = std::move(at), .value = value});
  for (size_t i = s.loops.size(); i-- > 0;) nest = make_loop(s.loops[i], shape[i], std::move(nest));
  return nest;
}

// Requires that all elements exist that the nest reads in these scan loops.
Error check_elements(const Kernel& kernel, const Stmt& nest, std::span<const Stmt> scans) {
  Kernel alone = kernel;
  alone.body = nest;
  for (size_t i = scans.size(); i-- > 0;) alone.body = with_body(scans[i], alone.body);
  return check_bounds(alone, Tables::ours);
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Pack& s) {
  TW_TRY(check_new_stage(kernel, s.name));
  TW_ASSIGN(const LoweredStage stage, lowered_stage(kernel, s.stage, true));
  const Expr found = factor_of(stage.store->value, s.factor);
  if (!found.defined()) return illegal("the value of stage '{0}' is not a product", s.stage);
  const DType type = number_in(found).type();
  Kernel out = with_temp(kernel, *stage.store, {s.name, type, {}, BufferRole::temp, s.scope});
  const BufferId packed = *out.find_buffer(s.name);
  TW_ASSIGN(const std::vector<Stmt> path, stage_path(out, s.stage));
  const stmt::Store& store = get<stmt::Store>(path.back());
  const Expr factor = factor_of(store.value, s.factor), number = number_in(factor);
  const int64_t zero = counted(factor).zero;
  if (zero != 0 && as_const(int_imm(zero, type)) != zero)
    return illegal("the factor counts from {0}, which is no {1}", zero, dtype_name(type));
  const size_t inside = scans_around(path, number, s.map);
  const std::span<const Stmt> scans(path.data(), inside);
  const Stmt& place = path[inside];  // the new stage stands in front of it
  for (const int32_t read : sources_of(number))
    if (writes(place, BufferId{read}))
      return illegal("'{0}' is written in the nest of stage '{1}'", out.buffer(BufferId{read}).name,
                     s.stage);
  std::vector<LoopRef> loops;
  for (const Stmt& around : std::span(path).subspan(inside))
    if (is<stmt::Loop>(around)) loops.emplace_back(around);
  PackMap map(s, number, store.where, out.symbols, loops, ranges_of(out, scans));
  TW_TRY(map.read());
  const std::vector<Expr> shape = out.buffer(packed).shape = map.shape();
  if (s.scope == kConstantScope) TW_TRY(check_constant(out, number, shape, s.name));

  TW_ASSIGN(Stmt nest, filling_nest(out, s, map, zero, packed, scans, false));
  if (store.where.defined() && map.exists_at_all_points() &&
      !reads_written(out, number, {}, ranges_of(out, path)))
    return illegal("not all of the factor is written where stage '{0}' does not ask", s.stage);
  const std::span<const Stmt> left = std::span(path).first(statements_around(path)).subspan(inside);
  const bool unconditional = std::ranges::any_of(left,
                                                 [](const Stmt& at) { return is<stmt::If>(at); });
  if (map.has_windows() || unconditional || (store.where.defined() && map.exists_at_all_points())) {
    if (Error error = check_elements(out, nest, scans)) {
      llvm::consumeError(std::move(error));
      TW_ASSIGN(nest, filling_nest(out, s, map, zero, packed, scans, true));
    }
  }

  // The sums may come to run over whole parts, so the place of a single point keeps its loop.
  std::vector<Expr> at = s.map;
  for (Expr& index : at) index = simplify(index, map.whole_ranges());
  stmt::Store reader = store;
  reader.value = with_factor(store.value, s.factor,
                             with_number(factor, load(packed, type, std::move(at))));
  const Stmt sums = replace(place, path.back(), make_store(std::move(reader)));
  out.body = replace(out.body, place, make_sequence({nest, sums}));
  return out;
}

}  // namespace tw::sched
