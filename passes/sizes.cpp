#include "passes/sizes.h"

#include <algorithm>

namespace tw {
namespace {

void unless_proven(const Expr& condition, const Ranges& symbols, std::vector<Expr>& out) {
  if (!can_prove(condition, symbols)) out.push_back(simplify(condition, symbols));
}

// Elements start, start + step ... of an axis.
void check_slice(const op::Slice& slice, const Shape& x, const Ranges& symbols, std::vector<Expr>& out) {
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const Expr &start = slice.starts[axis], &size = slice.sizes[axis];
    if (!is_data_dependent(start) && !is_data_dependent(size) && !is_data_dependent(x[axis])) continue;
    if (is_const(start, 0) && slice.steps[axis] == 1 && equal(Shape{size}, Shape{x[axis]})) continue;
    const Expr last = start + (size - 1) * Expr(slice.steps[axis]), low = slice.steps[axis] > 0 ? start : last, high = slice.steps[axis] > 0 ? last : start;
    const Expr inside = logical_and(le(Expr(0), low), lt(high, x[axis]));
    const Expr empty = eq(size, Expr(0));
    if (can_prove(inside, symbols)) continue;
    out.push_back(simplify(binary(BinaryOp::logical_or, inside, empty), symbols));
  }
}

}  // namespace

Expr largest(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges) {
  Ranges over;
  for (const std::string& symbol : symbols) {
    if (!uses_var(bytes, symbol)) continue;
    const auto range = ranges.find(symbol);
    if (range == ranges.end() || !range->second.max.defined()) return {};
    over.insert(*range);
  }
  const std::optional<Interval> interval = interval_over(bytes, over, ranges);
  if (!interval) return {};
  for (const auto& [symbol, range] : over)
    if (uses_var(interval->max, symbol)) return {};
  if (std::ranges::none_of(symbols, [&](const std::string& symbol) { return uses_var(interval->max, symbol); })) return interval->max;
  return over.empty() ? Expr() : largest(interval->max, symbols, ranges);   // bounds that other symbols of data make
}

std::vector<Expr> unproven(const Graph& graph, const Node& node, const Ranges& symbols) {
  std::vector<Expr> out;
  if (const auto* reshape = std::get_if<op::Reshape>(&node.attrs)) {
    const Shape& from = graph.value(node.inputs[0]).type.shape;
    if (!same_count(from, reshape->shape)) unless_proven(eq(element_count(from), element_count(reshape->shape)), symbols, out);
  }
  if (const auto* slice = std::get_if<op::Slice>(&node.attrs)) check_slice(*slice, graph.value(node.inputs[0]).type.shape, symbols, out);
  return out;
}

std::vector<int> plan_rooms(std::vector<Lifetime>& lifetimes, const Ranges& symbols, Program& program) {
  std::vector<int> rooms(lifetimes.size(), -1);
  std::vector<int> last;   // by room: the last call that uses it
  std::vector<size_t> order;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (!is_data_dependent(lifetimes[i].bytes)) continue;
    if (const Expr bytes = largest(lifetimes[i].bytes, program.data_symbols, symbols); bytes.defined()) lifetimes[i].bytes = bytes;
    else order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  for (size_t i : order) {
    const Lifetime& own = lifetimes[i];
    const auto free = std::ranges::find_if(last, [&](int end) { return end < own.first; });
    rooms[i] = static_cast<int>(free - last.begin());
    if (free == last.end()) last.push_back(own.last);
    else *free = own.last;
    SizeStep step{.kind = SizeStep::Kind::room, .before = static_cast<size_t>(own.first), .at = {Place::room, rooms[i], Expr(0)}};
    step.bytes = own.bytes;
    program.steps.push_back(std::move(step));
  }
  program.rooms = static_cast<int>(last.size());
  std::ranges::stable_sort(program.steps, [](const SizeStep& a, const SizeStep& b) { return std::pair(a.before, a.kind) < std::pair(b.before, b.kind); });
  return rooms;
}

}  // namespace tw
