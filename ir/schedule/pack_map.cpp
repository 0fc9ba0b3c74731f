#include "ir/schedule/pack_map.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tw::sched {

static constexpr int64_t kMostFactor = int64_t{1} << 20;
// u and v with a * u + b * v = 1, for numbers without a common divisor (Euclid)
static std::pair<int64_t, int64_t> inverses(int64_t a, int64_t b) {
  if (b == 0) return {1, 0};
  const auto [u, v] = inverses(b, a % b);
  return {v, u - a / b * v};
}
static constexpr size_t kMostParts = 3;  // parts of an index: their extents' product fits 64 bits

PackMap::PackMap(const step::Pack& s, Expr number, Expr where,
                 const std::vector<std::string>& symbols, const std::vector<LoopRef>& loops,
                 Ranges ranges)
    : s_(s),
      number_(std::move(number)),
      where_(std::move(where)),
      symbols_(symbols),
      ranges_(std::move(ranges)),
      loop_count_(loops.size()) {
  for (const LoopRef& loop : loops) sources_.push_back({loop->var, loop->extent, {}, {}});
}

Error PackMap::read() {
  if (s_.loops.size() != s_.map.size())
    return illegal("'{0}' has {1} dimensions, but {2} loops are named", s_.name, s_.map.size(),
                   s_.loops.size());
  if (s_.map.empty()) return illegal("'{0}' has no dimensions", s_.name);
  extents_.resize(s_.map.size());
  for (size_t index = 0; index < s_.map.size(); ++index) TW_TRY(add(index, s_.map[index]));
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    if (source.part.named()) {
      if (slides(i)) return twice(var(source.loop));
      TW_TRY(check_parts(source.part, source, source.window.empty()));
    } else if (!slides(i) && uses_var(number_, source.loop)) {
      return illegal("the map lacks loop '{0}', on which the factor depends", source.loop);
    }
    measure(source.part, source.extent);
  }
  element_ = moved(number_);
  for (size_t i = 0; i < loop_count_; ++i)
    if (uses_var(element_, sources_[i].loop))
      return illegal("the factor depends on more of '{0}' than the map names", sources_[i].loop);
  condition_ = condition_there();
  return Error::success();
}

std::vector<Expr> PackMap::shape() const {
  std::vector<Expr> shape;
  for (const std::vector<Expr>& parts : extents_) {
    Expr extent(1);
    for (const Expr& part : parts) extent = extent * part;
    shape.push_back(simplify(extent, ranges_));
  }
  return shape;
}

// True: the loop is a part of a window.
bool PackMap::slides(size_t loop) const {
  return loop < loop_count_ &&
         std::ranges::any_of(
             sources_,
             [&](const Source& s) {
               return std::ranges::any_of(s.window, [&](const Term& t) { return t.loop == loop; });
             });
}

Expr PackMap::inside() const {
  Expr condition;
  for (const size_t i : order_)
    add_condition(sources_[i].part, sources_[i], sources_[i].extent, condition);
  return logical_and(condition, condition_);
}

// undefined: the stage has no condition, or it depends on more than the temp's places
Expr PackMap::condition_there() const {
  if (!where_.defined()) return {};
  if (s_.scope == kConstantScope)
    for (const std::string& symbol : symbols_)
      if (uses_var(where_, symbol)) return {};
  for (size_t i = 0; i < loop_count_; ++i)
    if (!sources_[i].part.named() && !slides(i) && uses_var(where_, sources_[i].loop)) return {};
  const Expr there = moved(where_);
  for (size_t i = 0; i < loop_count_; ++i)
    if (uses_var(there, sources_[i].loop)) return {};
  return there;
}

Ranges PackMap::whole_ranges() const {
  Ranges ranges = ranges_;
  for (size_t i = 0; i < loop_count_; ++i)
    ranges[sources_[i].loop] = {
        Expr(0), simplify(whole_extent(sources_[i].part, sources_[i].extent) - Expr(1), ranges_)};
  return ranges;
}

std::optional<PackMap::Cut> PackMap::cut_of(const Expr& e, Expr& inner) {
  const auto* quotient = as_binary(e, BinaryOp::floor_div);
  const auto* binary = quotient ? quotient : as_binary(e, BinaryOp::floor_mod);
  if (!binary || !as_const(binary->b)) return std::nullopt;
  inner = binary->a;
  return Cut{quotient != nullptr, *as_const(binary->b)};
}

std::optional<PackMap::Sum> PackMap::sum_of(const Expr& e) {
  const auto* sum = as_binary(e, BinaryOp::add);
  const auto* product = sum ? as_binary(sum->a, BinaryOp::mul) : nullptr;
  if (!product || !as_const(product->b)) return std::nullopt;
  return Sum{product->a, sum->b, *as_const(product->b)};
}

std::optional<size_t> PackMap::loop_named(const Expr& e) const {
  const std::string* name = var_name(e);
  for (size_t i = 0; name && i < loop_count_; ++i)
    if (sources_[i].loop == *name) return i;
  return std::nullopt;
}

// The number of values of an index that is a loop or cut from one; nullopt: it is free or a sum.
std::optional<int64_t> PackMap::count_of(const Expr& index) const {
  Expr inner;
  if (const std::optional<Cut> cut = cut_of(index, inner)) {
    if (!cut->quotient) return cut->factor;
    const std::optional<int64_t> all = cut->factor < 1 ? std::nullopt : count_of(inner);
    return all ? std::optional((*all + cut->factor - 1) / cut->factor) : std::nullopt;
  }
  const std::optional<size_t> loop = loop_named(index);
  return loop ? as_const(sources_[*loop].extent) : std::nullopt;
}

Error PackMap::add(size_t index, const Expr& e) {
  // The second of two parts runs through all numbers below the factor of the first.
  if (const std::optional<Sum> sum = sum_of(e); sum && count_of(sum->last) == sum->factor) {
    if (sum->factor > kMostFactor)
      return illegal("the map multiplies by {0}, expected up to {1}", sum->factor, kMostFactor);
    TW_TRY(add(index, sum->first));
    return add(index, sum->last);
  }
  if (is_const(e, 0)) return Error::success();  // an index of extent 1
  std::vector<Cut> cuts;                        // the last is made first
  Expr at = e;
  for (Expr inner; const std::optional<Cut> cut = cut_of(at, inner); at = inner) {
    if (cut->factor < 1 || cut->factor > kMostFactor)
      return illegal("the map divides by {0}, expected 1 to {1}", cut->factor, kMostFactor);
    cuts.push_back(*cut);
  }
  TW_ASSIGN(const size_t source, source_of(at));
  if (std::ranges::find(order_, source) == order_.end()) order_.push_back(source);
  LoopPart* part = &sources_[source].part;
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    if (part->place || (part->factor && part->factor != cut->factor)) return twice(e);
    part->factor = cut->factor;
    std::unique_ptr<LoopPart>& next = cut->quotient ? part->quotient : part->remainder;
    if (!next) next = std::make_unique<LoopPart>();
    part = next.get();
  }
  if (part->named()) return twice(e);
  if (extents_[index].size() == kMostParts)
    return illegal("an index of the map has more than {0} parts", kMostParts);
  part->place = Place{index, extents_[index].size()};
  extents_[index].emplace_back();
  return Error::success();
}

Expected<size_t> PackMap::source_of(const Expr& e) {
  if (const std::optional<size_t> loop = loop_named(e)) return *loop;
  return window_of(e);
}

// The source of a sum of loops, which is new unless another index has it too
Expected<size_t> PackMap::window_of(const Expr& e) {
  Source window;
  Expr rest = e, last(0);
  for (size_t i = 0; i < loop_count_; ++i) {
    const std::optional<LinearTerm> term = linear_in(rest, sources_[i].loop);
    if (!term || term->coefficient == 0) continue;
    if (term->coefficient < 1 || term->coefficient > kMostFactor) break;
    window.window.push_back({i, term->coefficient});
    last = last + (sources_[i].extent - Expr(1)) * Expr(term->coefficient);
    rest = term->rest;
  }
  auto own = std::ranges::find(window.window, 1, &Term::factor);
  if (own == window.window.end() && window.window.size() == 2 &&
      std::gcd(window.window[0].factor, window.window[1].factor) == 1)
    own = window.window.begin();
  if (window.window.size() < 2 || !is_const(simplify(rest, ranges_), 0) ||
      own == window.window.end()) {
    const std::optional<Sum> sum = sum_of(e);
    if (const auto count = sum ? count_of(sum->last) : std::nullopt)
      return illegal("'{0}' in the map needs the factor {1}, the extent of '{2}'", to_string(e),
                     *count, to_string(sum->last));
    return illegal(
        "'{0}' in the map is not a loop of stage '{1}', quotients and remainders of one by "
        "constants, or a sum of loops times constants: one of them is 1, or two have no common "
        "divisor",
        to_string(e), s_.stage);
  }
  for (size_t i = loop_count_; i < sources_.size(); ++i)
    if (sources_[i].window == window.window) return i;
  window.loop = sources_[own->loop].loop;
  window.extent = simplify(last + Expr(1), ranges_);
  for (const Term& term : window.window)
    if (slides(term.loop)) return twice(e);
  sources_.push_back(std::move(window));
  return sources_.size() - 1;
}

Error PackMap::twice(const Expr& e) const {
  return illegal("'{0}' overlaps another index of the map", to_string(e));
}

Error PackMap::check_parts(const LoopPart& part, const Source& source,
                           bool may_lack_remainder) const {
  if (part.place) return Error::success();
  if (!part.quotient || !(part.remainder || may_lack_remainder))
    return illegal("the map has one of quotient and remainder of '{0}' by {1}, not both",
                   source.loop, part.factor);
  TW_TRY(check_parts(*part.quotient, source, false));
  return part.remainder ? check_parts(*part.remainder, source, false) : Error::success();
}

void PackMap::measure(const LoopPart& part, const Expr& extent) {
  if (part.place) {
    extents_[part.place->index][part.place->part] = extent;
    return;
  }
  if (!part.factor) return;  // a loop of extent 1, or in a window
  measure(*part.quotient, simplify(ceil_div(extent, part.factor), ranges_));
  if (part.remainder) measure(*part.remainder, Expr(part.factor));
}

// The loop that moves a window by its step, where windows do not overlap. A place has one point
// then, and the stage's expressions may use either loop. Step 0: they overlap, or it is none.
std::pair<std::string, int64_t> PackMap::apart(const Source& source) const {
  if (source.window.size() != 2) return {};
  const bool first = sources_[source.window[0].loop].loop == source.loop;
  const Term &within = source.window[first ? 0 : 1], &moves = source.window[first ? 1 : 0];
  const auto extent = as_const(sources_[within.loop].extent);
  if (!extent || *extent > moves.factor || within.factor != 1) return {};
  return {sources_[moves.loop].loop, moves.factor};
}

// The factors of a window of two loops, neither of which is 1; {1, 1}: it is another window, or
// none
std::pair<int64_t, int64_t> PackMap::without_unit(const Source& source) {
  if (source.window.size() != 2) return {1, 1};
  const int64_t a = source.window[0].factor, b = source.window[1].factor;
  return a == 1 || b == 1 ? std::pair<int64_t, int64_t>{1, 1} : std::pair{a, b};
}

// An expression of the stage at the loops that fill the temp
Expr PackMap::moved(const Expr& e) const {
  std::map<std::string, Expr, std::less<>> values;
  Ranges ranges = ranges_;
  for (size_t i = 0; i < s_.loops.size(); ++i) {
    Expr extent(1);
    for (const Expr& part : extents_[i]) extent = extent * part;
    ranges[s_.loops[i]] = {Expr(0), simplify(extent - Expr(1), ranges_)};
  }
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    if (slides(i)) continue;
    Expr value = value_of(source.part, source.loop);
    if (const auto [loop, step] = apart(source); step > 0) {
      values.emplace(loop, floor_div(value, step));
      value = floor_mod(value, step);
    } else if (const auto [a, b] = without_unit(source); a > 1) {
      // All points of a place, numbered by the first loop's name: nothing may depend on it.
      const auto [u, v] = inverses(a, b);
      const Expr number = var(source.loop);
      values.emplace(sources_[source.window[1].loop].loop, value * Expr(v) - number * Expr(a));
      value = value * Expr(u) + number * Expr(b);
    } else {
      for (const Term& term : source.window)
        if (sources_[term.loop].loop != source.loop)
          value = value - var(sources_[term.loop].loop) * Expr(term.factor);
    }
    values.emplace(source.loop, value);
    if (source.part.factor && !source.part.remainder)
      ranges[source.loop] = {Expr(0), Expr(source.part.factor - 1)};
  }
  return simplify(rewrite(e,
                          [&](const Expr& node) {
                            const std::string* name = var_name(node);
                            const auto value = name ? values.find(*name) : values.end();
                            return value == values.end() ? Expr() : value->second;
                          }),
                  ranges);
}

Expr PackMap::whole_extent(const LoopPart& part, const Expr& extent) const {
  if (!part.factor) return extent;
  const Expr quotients = simplify(ceil_div(extent, part.factor), ranges_);
  return whole_extent(*part.quotient, quotients) * Expr(part.factor);
}

Expr PackMap::value_at(const Place& place) const {
  const std::vector<Expr>& parts = extents_[place.index];
  Expr value = var(s_.loops[place.index]);
  int64_t below = 1;  // the extents of all but the first part are constant
  for (size_t part = place.part + 1; part < parts.size(); ++part) below *= *as_const(parts[part]);
  if (below > 1) value = floor_div(value, Expr(below));
  return place.part == 0 ? value : floor_mod(value, parts[place.part]);
}

// An absent remainder keeps the loop's name, to show that nothing depends on it.
Expr PackMap::value_of(const LoopPart& part, const std::string& loop) const {
  if (part.place) return value_at(*part.place);
  if (!part.factor) return Expr(0);
  return value_of(*part.quotient, loop) * Expr(part.factor) +
         (part.remainder ? value_of(*part.remainder, loop) : var(loop));
}

void PackMap::add_condition(const LoopPart& part, const Source& source, const Expr& extent,
                            Expr& condition) const {
  if (!part.factor) return;
  if (part.remainder && !is_const(simplify(floor_mod(extent, Expr(part.factor)), ranges_), 0))
    condition = logical_and(condition, lt(value_of(part, source.loop), extent));
  add_condition(*part.quotient, source, simplify(ceil_div(extent, part.factor), ranges_),
                condition);
  if (part.remainder) add_condition(*part.remainder, source, Expr(part.factor), condition);
}

}  // namespace tw::sched
