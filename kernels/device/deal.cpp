#include "kernels/device/deal.h"

#include <algorithm>
#include <map>

#include "ir/simplify.h"

namespace tw {

int64_t digit_elements(const Digits& digits) {
  int64_t elements = 1;
  for (const PlacementDigit& digit : digits)
    if (digit.thread == 0) elements *= digit.extent;
  return elements;
}

int64_t digit_threads(const Digits& digits) {
  int64_t threads = 1;
  for (const PlacementDigit& digit : digits)
    if (digit.thread != 0) threads *= digit.extent;
  return threads;
}

static Expr value_of(const PlacementDigit& digit, const Expr& place) {
  return floor_mod(floor_div(place, Expr(digit.stride)), Expr(digit.extent));
}

Expr thread_at(const Digits& digits, const Expr& place) {
  Expr thread(0);
  for (const PlacementDigit& digit : digits)
    if (digit.thread != 0) thread = thread + value_of(digit, place) * Expr(digit.thread);
  return thread;
}

// The number that the digits of threads, or those of elements, form
static Expr number_at(const Digits& digits, const Expr& place, bool threads) {
  Expr number(0);
  int64_t step = 1;
  for (const PlacementDigit& digit : digits) {
    if ((digit.thread != 0) != threads) continue;
    number = number + value_of(digit, place) * Expr(step);
    step *= digit.extent;
  }
  return number;
}

Expr element_at(const Digits& digits, const Expr& place) { return number_at(digits, place, false); }
Expr part_at(const Digits& digits, const Expr& place) { return number_at(digits, place, true); }

Digits parts_of(const Digits& digits) {
  Digits parts;
  int64_t step = 1;
  for (const PlacementDigit& digit : digits) {
    if (digit.thread == 0) continue;
    parts.push_back({step, digit.extent, digit.thread});
    step *= digit.extent;
  }
  return parts;
}

Digits in_groups(Digits digits, int64_t count, int64_t thread) {
  int64_t places = 1;
  for (const PlacementDigit& digit : digits) places *= digit.extent;
  digits.push_back({places, count, thread});
  std::erase_if(digits, [](const PlacementDigit& digit) { return digit.extent == 1; });
  if (digits.empty()) digits.push_back({});
  return digits;
}

DealtLoop deal_loop(ScheduleBuilder& s, const Loop& loop, const Digits& digits) {
  DealtLoop dealt;
  Loop rest = loop;
  for (size_t d = digits.size(); d-- > 0;) {
    Loop digit = rest;
    if (d > 0) {
      const std::string name = loop.name() + std::to_string(d);
      const auto cut = s.split(rest, digits[d].stride, Tail::guard, name + "o", name + "i");
      digit = cut.outer, rest = cut.inner;
    }
    if (digits[d].thread != 0) dealt.threads.emplace_back(digits[d].thread, digit);
    else dealt.elements.push_back(digit);
  }
  return dealt;
}

static std::map<int64_t, Loop, std::greater<>> threads_of(const std::vector<DealtLoop>& dealt) {
  std::map<int64_t, Loop, std::greater<>> threads;
  for (const DealtLoop& one : dealt) threads.insert(one.threads.begin(), one.threads.end());
  return threads;
}

Threads join_threads(ScheduleBuilder& s, const std::vector<DealtLoop>& dealt, int64_t together,
                     const std::string& name) {
  Loops groups, lanes;
  for (const auto& [amount, loop] : threads_of(dealt))
    (amount >= together ? groups : lanes).push_back(loop);
  return {s.fuse(groups, name + "_group"), s.fuse(lanes, name + "_lane")};
}

Threads deal_nest(ScheduleBuilder& s, const Loops& loops, const std::vector<Digits>& digits,
                  int64_t together, const std::string& name, const Loops& outer, bool vector) {
  std::vector<DealtLoop> dealt;
  for (size_t i = 0; i < loops.size(); ++i) dealt.push_back(deal_loop(s, loops[i], digits[i]));
  Loops order = outer, elements;
  for (const auto& [amount, loop] : threads_of(dealt)) order.push_back(loop);
  for (const DealtLoop& one : dealt)
    elements.insert(elements.end(), one.elements.begin(), one.elements.end());
  order.insert(order.end(), elements.begin(), elements.end());
  s.reorder(order);
  if (vector && digits.back().front().thread == 0) {
    s.vectorize(elements.back());
    elements.pop_back();
  }
  s.unroll(elements);
  return join_threads(s, dealt, together, name);
}

DealtCopies deal_copies(ScheduleBuilder& s, const Stage& stage, Loops loops, const CopyDeal& deal) {
  const std::string& label = stage.label();
  DealtCopies copies;
  Loop lane;
  int64_t points = 1;
  for (const Loop& loop : loops) points *= s.extent(loop).value_or(1);
  copies.vectors = deal.vector > 1 && points % (deal.vector * deal.threads) == 0 &&
                   side_by_side(s, stage, loops.back(), deal.vector);
  if (copies.vectors) {
    const auto cut = s.split(loops.back(), deal.vector, Tail::guard, label + "_v", label + "_lane");
    loops.back() = cut.outer, lane = cut.inner;
  } else if (deal.across && loops.size() > 1) {
    std::swap(loops[loops.size() - 1], loops[loops.size() - 2]);
    s.reorder(loops);
  }
  const auto dealt = s.split(s.fuse(loops, label + "_all"), deal.threads, Tail::guard,
                             label + "_turn", label + "_thread");
  s.reorder({dealt.inner, dealt.outer});
  if (s.extent(dealt.outer).value_or(1) > deal.at_once)
    s.unroll(
        s.split(dealt.outer, deal.at_once, Tail::guard, label + "_turns", label + "_one").inner);
  else s.unroll(dealt.outer);
  s.vectorize(lane);
  copies.thread = dealt.inner;
  return copies;
}

Threads in_groups_of(ScheduleBuilder& s, const Loop& thread, int64_t together) {
  const auto cut = s.split(thread, together, Tail::guard, thread.name() + "_warp",
                           thread.name() + "_lane");
  return {cut.outer, cut.inner};
}

std::vector<Expr> placed(const TileInstruction& by, int32_t parameter, const Expr& first,
                         const Expr& second) {
  const std::string &a = parameter == 1 ? by.column : by.row,
                    &b = parameter == 2 ? by.column : by.depth;
  std::vector<Expr> at = indices_of(*by.semantics, BufferId{parameter});
  // Substitutes both at once, since the places may use the loops' names as variables.
  for (Expr& e : at)
    e = rewrite(e, [&](const Expr& n) {
      const std::string* name = var_name(n);
      return !name ? Expr() : *name == a ? first : *name == b ? second : Expr();
    });
  return at;
}

void place_operand(ScheduleBuilder& s, const TileInstruction& by, const Stage& copy,
                   FragmentOf which) {
  const bool left = which == FragmentOf::left, across = which == FragmentOf::right;
  s.layout(copy.buffer(), [&](const std::vector<Expr>& at) {
    const size_t last = at.size() - 1;
    const Expr &place = at[across ? last : last - 1], &step = at[across ? last - 1 : last],
               part(left ? by.m : by.n);
    std::vector<Expr> all = {floor_div(place, part)};
    all.insert(all.end(), at.begin(), at.end() - 2);
    for (const Expr& e : placed(by, left ? 0 : 1, floor_mod(place, part), step)) all.push_back(e);
    return all;
  });
}

Loop load_operand(ScheduleBuilder& s, const TileInstruction& by, const Stage& copy, const Loop& at,
                  FragmentOf which) {
  const bool left = which == FragmentOf::left, across = which == FragmentOf::right;
  const std::string& name = copy.label();
  const Loops loops = s.loops_inside(copy, at);
  if (!s.sound()) return {};
  const Loop &places = loops[across ? 1 : 0], &steps = loops[across ? 0 : 1];
  const int64_t part = left ? by.m : by.n, parts = s.extent(places).value_or(part) / part;
  const auto load = fragment_load(s.target(), by, which);
  if (!load) {
    const OperandPlacement& placement = left ? by.left : by.right;
    return deal_nest(s, {places, steps},
                     {in_groups(placement.digits[0], parts, 0), placement.digits[1]}, by.together,
                     name, {}, left)
        .lanes;
  }
  const auto one = s.split(places, part, Tail::guard, name + "p", name + "q"),
             row = s.split(across ? steps : one.inner, load->rows, Tail::guard, name + "ro",
                           name + "ri"),
             column = s.split(across ? one.inner : steps, load->columns, Tail::guard, name + "co",
                              name + "ci");
  s.reorder({one.outer, column.outer, row.outer, row.inner, column.inner});
  s.unroll(one.outer);
  s.tensorize(s.fuse({column.outer, row.outer}, name + "_matrix"), load->intrinsic->name,
              name + "_load");
  return {};
}

void keep_rows_apart(ScheduleBuilder& s, const BufferName& buffer, const Digits& digits) {
  const Buffer* found = s.find(buffer);
  if (!found) return;
  int64_t apart = std::max<int64_t>(1, s.target().lanes(dtype_bytes(found->dtype)));
  for (const PlacementDigit& digit : digits)
    if (digit.thread != 0) apart = std::max(apart, digit.stride * digit.extent);
  s.storage_align(buffer, static_cast<int64_t>(found->shape.size()) - 2, 2 * apart, apart);
}

}  // namespace tw
