// Sums by pairs of depth steps: lane 2 * c + p of a vector sums the steps of parity p of column c,
// so that the left operand's pair is one load for all columns. Panels hold [..][columns][2].
#include <algorithm>
#include <numeric>

#include "kernels/schedule/builder.h"

namespace tw {
namespace {

constexpr int64_t kPairsTogether = 4;  // of them in one step of a loop

}  // namespace

std::string paired_loop(const ScheduleBuilder& s) {
  std::string found;
  for (const Stmt& store : stores_of(s.kernel().body)) {
    if (store->label != "acc") continue;
    visit(store->value, [&](const Expr& e) {
      if (e->kind != ExprKind::load || s.kernel().buffer(e->buffer).name != "w") return;
      const Expr& last = e->args.back();
      if (last->kind != ExprKind::binary || last->binary != BinaryOp::floor_mod ||
          !is_const(last->args[1], 2))
        return;
      for (const std::string& loop : s.reduce_loops_of("acc"))
        if (uses_var(last, loop)) found = loop;
    });
  }
  return found;
}

std::vector<std::string> accumulate_pairs(ScheduleBuilder& s, const std::string& stage,
                                          const std::string& at, const std::string& paired,
                                          std::vector<std::string> reduce,
                                          const std::vector<std::string>& tile,
                                          const std::string& lane) {
  const std::string pairs = paired + "2", parity = paired + "p", partial_stage = stage + "p";
  s.split(paired, 2, Tail::guard, pairs, parity);
  s.rfactor(stage, parity, partial_stage);
  s.compute_at(stage, at);
  s.compute_at(partial_stage, at);
  const auto named = [](const std::string& stage, std::vector<std::string> loops) {
    for (std::string& loop : loops) loop = stage + "_" + loop;
    return loops;
  };
  const std::string sum = stage + "_" + parity, columns = partial_stage + "_" + lane,
                    steps = partial_stage + "_" + parity;
  s.accumulate(stage, {sum}, named(stage, tile), stage + "_" + lane);
  s.unroll(sum);
  std::vector<std::string> partial = named(partial_stage, tile);
  partial.push_back(columns + "v");
  const std::string lanes = columns + "p";
  for (const char* nest : {"", "_init"}) {  // the init may have a nest of its own already
    if (!s.has_loop(columns + nest)) continue;
    s.split(columns + nest, s.target().lanes(4) / 2, Tail::guard, columns + "v" + nest,
            columns + "l" + nest);
    std::vector<std::string> order;
    for (const std::string& loop : partial) order.push_back(loop + nest);
    order.insert(order.end(), {columns + "l" + nest, steps + nest});
    s.reorder(order);
    s.fuse({columns + "l" + nest, steps + nest}, lanes + nest);
  }
  // Steps in one straight line: pairs, then blocks of channels.
  std::vector<std::string> rolled, together;
  int64_t left = kPairsTogether;
  const auto cut = [&](const std::string& loop) {
    const int64_t count = s.extent(loop).value_or(1), inner = std::gcd(count, left);
    left /= inner;
    if (inner == count) {
      together.insert(together.begin(), loop);
      return;
    }
    if (inner > 1) {
      s.split(loop, inner, Tail::guard, loop + "s", loop + "t");
      together.insert(together.begin(), loop + "t");
    }
    rolled.push_back(inner > 1 ? loop + "s" : loop);
  };
  cut(pairs);
  for (auto loop = reduce.rbegin(); loop != reduce.rend(); ++loop) {
    if (*loop == "rc" || *loop == "rci") cut(*loop);
    else if (*loop != paired) rolled.push_back(*loop);
  }
  std::ranges::reverse(rolled);
  std::vector<std::string> all = rolled;
  all.insert(all.end(), together.begin(), together.end());
  s.accumulate(partial_stage, all, partial, lanes);
  s.set_scope(stage, "register");
  s.set_scope(partial_stage, "register");
  return rolled;
}

}  // namespace tw
