// Sums by pairs of depth steps. Lane 2 * c + p of a vector sums the steps of parity p for column c,
// so one load brings the left operand's pair for all columns. Panels hold [..][columns][2].
#include <algorithm>
#include <numeric>

#include "kernels/schedule/builder.h"

namespace tw {
namespace {

constexpr int64_t kPairsTogether = 4;  // pairs in one step of a loop

// Loops over the partial sums' columns: vectors, and lanes with both parities of a column next to
// each other
struct PairLanes {
  Loop vectors, lanes;
};
PairLanes fuse_parity(ScheduleBuilder& s, const Loops& tile, const Loop& columns,
                      const Loop& parity) {
  PairLanes result;
  for (const bool init : {false, true}) {  // the init may already have a nest of its own
    const auto own = [&](const Loop& loop) { return init ? s.init_of(loop) : loop; };
    const std::string suffix = init ? "_init" : "";
    const std::string& name = columns.name();
    if (!s.has(own(columns))) continue;
    const auto cut = s.split(own(columns), s.target().lanes(4) / 2, Tail::guard,
                             name + "v" + suffix, name + "l" + suffix);
    Loops order;
    for (const Loop& loop : tile) order.push_back(own(loop));
    order.insert(order.end(), {cut.outer, cut.inner, own(parity)});
    s.reorder(order);
    const Loop lanes = s.fuse({cut.inner, own(parity)}, name + "p" + suffix);
    if (!init) result = {cut.outer, lanes};
  }
  return result;
}

// The loops in straight-line code: over pairs, then over blocks of channels
class StraightLine {
 public:
  explicit StraightLine(ScheduleBuilder& s) : s_(s) {}

  // Adds as many iterations of the next outer loop as still fit.
  void cut(const Loop& loop) {
    const int64_t count = s_.extent(loop).value_or(1), inner = std::gcd(count, left_);
    left_ /= inner;
    if (inner == count) {
      together_.insert(together_.begin(), loop);
    } else if (inner == 1) {
      rolled_.push_back(loop);
    } else {
      const auto parts = s_.split(loop, inner, Tail::guard, loop.name() + "s", loop.name() + "t");
      together_.insert(together_.begin(), parts.inner);
      rolled_.push_back(parts.outer);
    }
  }
  void roll(const Loop& loop) { rolled_.push_back(loop); }

  Loops rolled() const { return {rolled_.rbegin(), rolled_.rend()}; }
  const Loops& together() const { return together_; }

 private:
  ScheduleBuilder& s_;
  int64_t left_ = kPairsTogether;
  Loops rolled_, together_;  // innermost first; outermost first
};

}  // namespace

PairedSteps accumulate_pairs(ScheduleBuilder& s, const PairedSums& sums, const Loop& at) {
  const std::string paired = sums.paired.name();
  const auto halves = s.split(sums.paired, 2, Tail::guard, paired + "2", paired + "p");
  const Stage partial = s.rfactor(sums.stage, halves.inner, sums.stage.label() + "p");
  s.compute_at(sums.stage, at);
  s.compute_at(partial, at);
  const Loop parity_sum = s.moved(sums.stage, halves.inner);
  s.accumulate(sums.stage, {parity_sum}, s.moved(sums.stage, sums.tile),
               s.moved(sums.stage, sums.lane));
  s.unroll(parity_sum);
  Loops tile = s.moved(partial, sums.tile);
  const PairLanes lanes = fuse_parity(s, tile, s.moved(partial, sums.lane),
                                      s.moved(partial, halves.inner));
  tile.push_back(lanes.vectors);

  StraightLine line(s);
  line.cut(halves.outer);
  for (auto loop = sums.reduce.rbegin(); loop != sums.reduce.rend(); ++loop) {
    if (*loop == sums.blocks) line.cut(*loop);
    else if (*loop != sums.paired) line.roll(*loop);
  }
  Loops order = line.rolled();
  order.insert(order.end(), line.together().begin(), line.together().end());
  s.accumulate(partial, order, tile, lanes.lanes);
  s.set_scope(sums.stage, "register");
  s.set_scope(partial, "register");
  PairedSteps steps{line.rolled(), line.together()};
  std::erase(steps.straight, sums.blocks);  // a loop over all blocks stays a loop
  return steps;
}

}  // namespace tw
