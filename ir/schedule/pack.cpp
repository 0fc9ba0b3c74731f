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
// the loops on which it depends. A cast that widens it stays in the sums. Each loop is a dimension
// of the temp, or is cut in a quotient and a remainder by one constant, and these may be cut again.
// Parts are filled up to whole ones with zeros. Two parts may share an index, as in i % 4 * 16 + j,
// and an index may be 0.
//
// Legal: the stage is as lowered, its nest writes nothing that the factor reads, and the map names
// each loop on which the factor depends. If the stage's condition depends on other loops, the
// factor exists at all points. Scope constant needs a factor of one constant parameter, and
// constant extents: the new stage then runs while the model is compiled.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "ir/kernel/bounds.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

constexpr int64_t kMostFactor = int64_t{1} << 20;
constexpr size_t kMostParts = 3;  // parts of an index: their extents' product fits 64 bits

// A part of an index of the temp: indices are parts, or sums a * extent of b + b of such
struct Place {
  size_t index = 0, part = 0;
};

// A loop, or a part of one: it has a place, or is cut by the factor
struct LoopPart {
  std::optional<Place> place;
  int64_t factor = 0;
  std::unique_ptr<LoopPart> quotient, remainder;
};

// One cut of a chain: the part's quotient or remainder by the factor
struct LoopCut {
  bool quotient;
  int64_t factor;
};

class PackMap {
 public:
  // `where` and `loops` are those of the stage, `symbols` those of its kernel.
  PackMap(const step::Pack& s, const Expr& factor, const Expr& where,
          const std::vector<std::string>& symbols, std::vector<LoopRef> loops, const Ranges& ranges)
      : s_(s),
        factor_(factor),
        where_(where),
        symbols_(symbols),
        loops_(std::move(loops)),
        ranges_(ranges),
        parts_(loops_.size()) {}

  Error read() {
    if (s_.loops.size() != s_.map.size())
      return illegal("'{0}' has {1} dimensions, but {2} loops are named", s_.name, s_.map.size(),
                     s_.loops.size());
    extents_.resize(s_.map.size());
    for (size_t index = 0; index < s_.map.size(); ++index) TW_TRY(add(index, s_.map[index]));
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].place || parts_[i].factor) TW_TRY(check_whole(parts_[i], loops_[i]->var));
      else if (uses_var(factor_, loops_[i]->var))
        return illegal("the map lacks loop '{0}', on which the factor depends", loops_[i]->var);
      measure(parts_[i], loops_[i]->extent);
    }
    for (size_t index = 0; index < s_.map.size(); ++index)
      TW_TRY(check_dense(index, s_.map[index]));
    return Error::success();
  }

  std::vector<Expr> shape() const {
    std::vector<Expr> shape;
    for (const std::vector<Expr>& parts : extents_) {
      Expr extent(1);
      for (const Expr& part : parts) extent = extent * part;
      shape.push_back(simplify(extent, ranges_));
    }
    return shape;
  }

  // An expression of the stage at the loops that fill the temp
  Expr moved(const Expr& e) const {
    std::map<std::string, Expr, std::less<>> values;
    for (size_t i = 0; i < parts_.size(); ++i) values.emplace(loops_[i]->var, value_of(parts_[i]));
    return rewrite(e, [&](const Expr& node) {
      const std::string* name = var_name(node);
      const auto value = name ? values.find(*name) : values.end();
      return value == values.end() ? Expr() : value->second;
    });
  }
  // The ranges of the stage's loops while they run over whole parts
  Ranges whole_ranges() const {
    Ranges ranges = ranges_;
    for (size_t i = 0; i < parts_.size(); ++i)
      ranges[loops_[i]->var] = {
          Expr(0), simplify(whole_extent(parts_[i], loops_[i]->extent) - Expr(1), ranges_)};
    return ranges;
  }
  // The condition under which the point exists there, loop by loop in the order of the map, then
  // the stage's own if it depends on no other loops, and on no symbols while compiling: where that
  // does not hold, factors need not exist
  Expr inside() const {
    Expr condition;
    for (const size_t i : order_) add_condition(parts_[i], loops_[i]->extent, condition);
    return exists_at_all_points() ? condition : logical_and(condition, moved(where_));
  }
  // True: the factor is computed without regard to the stage's condition.
  bool exists_at_all_points() const {
    if (!where_.defined()) return true;
    if (s_.scope == kConstantScope)
      for (const std::string& symbol : symbols_)
        if (uses_var(where_, symbol)) return true;
    for (size_t i = 0; i < parts_.size(); ++i)
      if (!parts_[i].place && !parts_[i].factor && uses_var(where_, loops_[i]->var)) return true;
    return false;
  }

 private:
  static std::optional<LoopCut> cut_of(const Expr& e, Expr& inner) {
    const auto* quotient = as_binary(e, BinaryOp::floor_div);
    const auto* binary = quotient ? quotient : as_binary(e, BinaryOp::floor_mod);
    if (!binary || !as_const(binary->b)) return std::nullopt;
    inner = binary->a;
    return LoopCut{quotient != nullptr, *as_const(binary->b)};
  }

  // An index a * c + b: its parts a, which may have parts again, and b
  struct Sum {
    Expr first, last;
    int64_t factor;
  };
  static std::optional<Sum> sum_of(const Expr& e) {
    const auto* sum = as_binary(e, BinaryOp::add);
    const auto* product = sum ? as_binary(sum->a, BinaryOp::mul) : nullptr;
    if (!product || !as_const(product->b)) return std::nullopt;
    return Sum{product->a, sum->b, *as_const(product->b)};
  }

  Error add(size_t index, const Expr& e) {
    if (const std::optional<Sum> sum = sum_of(e)) {
      TW_TRY(add(index, sum->first));
      return add(index, sum->last);
    }
    if (is_const(e, 0)) return Error::success();  // an index of extent 1
    std::vector<LoopCut> cuts;                    // the last is made first
    Expr at = e;
    for (Expr inner; const std::optional<LoopCut> cut = cut_of(at, inner); at = inner) {
      if (cut->factor < 1 || cut->factor > kMostFactor)
        return illegal("the map divides by {0}, expected 1 to {1}", cut->factor, kMostFactor);
      cuts.push_back(*cut);
    }
    const auto* variable = as<expr::Var>(at);
    const auto loop = std::ranges::find_if(
        loops_, [&](const LoopRef& l) { return variable && l->var == variable->name; });
    if (loop == loops_.end())
      return illegal(
          "'{0}' in the map is not a loop of stage '{1}', or quotients and remainders of one by "
          "constants",
          to_string(e), s_.stage);
    const auto number = static_cast<size_t>(loop - loops_.begin());
    if (std::ranges::find(order_, number) == order_.end()) order_.push_back(number);
    LoopPart* part = &parts_[number];
    for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
      if (part->place || (part->factor && part->factor != cut->factor)) return twice(e);
      part->factor = cut->factor;
      std::unique_ptr<LoopPart>& next = cut->quotient ? part->quotient : part->remainder;
      if (!next) next = std::make_unique<LoopPart>();
      part = next.get();
    }
    if (part->place || part->factor) return twice(e);
    if (extents_[index].size() == kMostParts)
      return illegal("an index of the map has more than {0} parts", kMostParts);
    part->place = Place{index, extents_[index].size()};
    extents_[index].emplace_back();
    return Error::success();
  }

  static Error twice(const Expr& e) {
    return illegal("'{0}' overlaps another index of the map", to_string(e));
  }

  // Requires that each part of an index runs through all numbers below its factor.
  Error check_dense(size_t index, const Expr& e) const {
    const std::vector<Expr>& parts = extents_[index];
    Expr rest = e;
    for (size_t part = parts.size(); part-- > 1;) {
      const Sum sum = *sum_of(rest);
      if (!is_const(parts[part], sum.factor) || sum.factor > kMostFactor)
        return illegal("'{0}' in the map needs the factor {1}, the extent of '{2}'", to_string(e),
                       to_string(parts[part]), to_string(sum.last));
      rest = sum.first;
    }
    return Error::success();
  }

  static Error check_whole(const LoopPart& part, const std::string& loop) {
    if (part.place) return Error::success();
    if (!part.quotient || !part.remainder)
      return illegal("the map has one of quotient and remainder of '{0}' by {1}, not both", loop,
                     part.factor);
    TW_TRY(check_whole(*part.quotient, loop));
    return check_whole(*part.remainder, loop);
  }

  void measure(const LoopPart& part, const Expr& extent) {
    if (part.place) {
      extents_[part.place->index][part.place->part] = extent;
      return;
    }
    if (!part.factor) return;  // a loop of extent 1
    measure(*part.quotient, simplify(ceil_div(extent, part.factor), ranges_));
    measure(*part.remainder, Expr(part.factor));
  }

  Expr whole_extent(const LoopPart& part, const Expr& extent) const {
    if (!part.factor) return extent;
    const Expr quotients = simplify(ceil_div(extent, part.factor), ranges_);
    return whole_extent(*part.quotient, quotients) * Expr(part.factor);
  }

  Expr value_at(const Place& place) const {
    const std::vector<Expr>& parts = extents_[place.index];
    Expr value = var(s_.loops[place.index]);
    int64_t below = 1;  // check_dense: these extents are constant
    for (size_t part = place.part + 1; part < parts.size(); ++part) below *= *as_const(parts[part]);
    if (below > 1) value = floor_div(value, Expr(below));
    return place.part == 0 ? value : floor_mod(value, parts[place.part]);
  }

  Expr value_of(const LoopPart& part) const {
    if (part.place) return value_at(*part.place);
    if (!part.factor) return Expr(0);
    return value_of(*part.quotient) * Expr(part.factor) + value_of(*part.remainder);
  }

  void add_condition(const LoopPart& part, const Expr& extent, Expr& condition) const {
    if (!part.factor) return;
    if (!is_const(simplify(floor_mod(extent, Expr(part.factor)), ranges_), 0))
      condition = logical_and(condition, lt(value_of(part), extent));
    add_condition(*part.quotient, simplify(ceil_div(extent, part.factor), ranges_), condition);
    add_condition(*part.remainder, Expr(part.factor), condition);
  }

  const step::Pack& s_;
  const Expr &factor_, &where_;
  const std::vector<std::string>& symbols_;
  std::vector<LoopRef> loops_;
  const Ranges& ranges_;
  std::vector<LoopPart> parts_;             // by loop
  std::vector<size_t> order_;               // loops, as the map names them
  std::vector<std::vector<Expr>> extents_;  // by index: those of its parts
};

// The factor behind the cast that widens it, if there is one
Expr unwidened(Expr factor) {
  if (const auto* rounded = as_unary(factor, UnaryOp::tf32)) factor = rounded->a;
  const auto* cast = as<expr::Cast>(factor);
  const bool widens = cast && dtype_bytes(cast->a.type()) < dtype_bytes(factor.type());
  return widens ? cast->a : factor;
}

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

// The nest of the new stage
Expected<Stmt> filling_nest(const Kernel& out, const step::Pack& s, const PackMap& map,
                            const Expr& factor, BufferId packed) {
  const std::vector<Expr>& shape = out.buffer(packed).shape;
  Ranges ranges = ranges_of(out, {});
  std::vector<Expr> at;
  for (size_t i = 0; i < s.loops.size(); ++i) {
    TW_TRY(check_new_loop(out, s.loops[i]));
    if (std::ranges::count(s.loops, s.loops[i]) > 1)
      return illegal("two new loops are called '{0}'", s.loops[i]);
    ranges[s.loops[i]] = {Expr(0), simplify(shape[i] - Expr(1), ranges)};
    at.push_back(simplify(var(s.loops[i]), ranges));
  }
  const Expr element = map.moved(factor), inside = map.inside(),
             value = inside.defined() ? select(inside, element, imm(0, factor.type())) : element;
  Stmt nest = make_store({.label = s.name,
                          .buffer = packed,
                          .indices = std::move(at),
                          .value = simplify(value, ranges)});
  for (size_t i = s.loops.size(); i-- > 0;) nest = make_loop(s.loops[i], shape[i], std::move(nest));
  return nest;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Pack& s) {
  TW_TRY(check_new_stage(kernel, s.name));
  TW_ASSIGN(const LoweredStage stage, lowered_stage(kernel, s.stage, true));
  const Expr found = factor_of(stage.store->value, s.factor);
  if (!found.defined()) return illegal("the value of stage '{0}' is not a product", s.stage);
  const DType type = unwidened(found).type();
  Kernel out = with_temp(kernel, *stage.store, {s.name, type, {}, BufferRole::temp, s.scope});
  const BufferId packed = *out.find_buffer(s.name);
  TW_ASSIGN(const std::vector<Stmt> path, stage_path(out, s.stage));
  const stmt::Store& store = get<stmt::Store>(path.back());
  const Expr widened = factor_of(store.value, s.factor), factor = unwidened(widened);
  for (const int32_t read : sources_of(factor))
    if (writes(path.front(), BufferId{read}))
      return illegal("'{0}' is written in the nest of stage '{1}'", out.buffer(BufferId{read}).name,
                     s.stage);
  std::vector<LoopRef> loops;
  for (const Stmt& around : path)
    if (is<stmt::Loop>(around)) loops.emplace_back(around);
  const Ranges ranges = ranges_of(out, {});
  PackMap map(s, factor, store.where, out.symbols, std::move(loops), ranges);
  TW_TRY(map.read());
  const std::vector<Expr> shape = out.buffer(packed).shape = map.shape();
  if (s.scope == kConstantScope) TW_TRY(check_constant(out, factor, shape, s.name));

  TW_ASSIGN(const Stmt nest, filling_nest(out, s, map, factor, packed));
  if (store.where.defined() && map.exists_at_all_points()) {
    Kernel alone = out;
    alone.body = nest;
    if (Error error = check_bounds(alone, Tables::ours))
      return illegal("the factor does not exist at all points: {0}", error_text(std::move(error)));
  }

  // The sums may come to run over whole parts, so the place of a single point keeps its loop.
  std::vector<Expr> place = s.map;
  for (Expr& index : place) index = simplify(index, map.whole_ranges());
  stmt::Store reader = store;
  const Expr packed_factor = load(packed, type, std::move(place));
  const std::function<Expr(const Expr&)> replaced = [&](const Expr& e) {
    return e.get() == factor.get() ? packed_factor : with_operands(e, replaced);
  };
  reader.value = with_factor(store.value, s.factor, replaced(widened));
  const Stmt sums = replace(path.front(), path.back(), make_store(std::move(reader)));
  out.body = replace(out.body, path.front(), make_sequence({nest, sums}));
  return out;
}

}  // namespace tw::sched
