// Chains of stages over the same rows (softmax, normalisation, attention, transforms): all that the
// last stage needs of some rows is made at one of its loops.
#include <algorithm>

#include "autotune/spaces/generated.h"

namespace tw::generated {
namespace {

// Loops of the stage below `at`.
Loops below(const ScheduleBuilder& s, const Stage& stage, const Loop& at) {
  Loops loops = s.loops_of(stage);
  const auto found = std::ranges::find(loops, at);
  if (found != loops.end()) loops.erase(loops.begin(), found + 1);
  return loops;
}

// A stage within the rows: sums in vectors of neighbours, or along the reduction where it has no
// neighbours.
void map_inside(ScheduleBuilder& s, const Structure& k, const Nest& nest, const Loop& at) {
  const std::string& label = nest.stage.label();
  const Loops own = below(s, nest.stage, at), reduce = s.reduce_loops_of(nest.stage);
  Loops spatial;
  for (const Loop& loop : own)
    if (std::ranges::find(reduce, loop) == reduce.end()) spatial.push_back(loop);
  if (spatial.empty()) {
    if (nest.sums() && reduce.size() == 1 && s.extent(reduce.front()).value_or(1024) < 1024 &&
        s.choose_switch("fold_" + label, true)) {
      s.decompose(nest.stage, reduce.front());
      s.vectorize(reduce.front());
    }
    return;
  }
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(nest.store->buffer).dtype)) *
                        s.choose("vectors_" + label, 1, {2, 4});
  Loop lane = spatial.back();
  if (s.extent(lane).value_or(lanes + 1) > lanes)
    lane = s.split(lane, lanes, Tail::guard, lane.name() + "_o", lane.name() + "_v").inner;
  if (!reduce.empty()) s.accumulate(nest.stage, reduce, {}, lane);
  else s.vectorize(lane);
}

}  // namespace

void sketch_rows(ScheduleBuilder& s, const Structure& k) {
  const Nest& last = k.nests.back();
  if (!last.reduce.empty() || !last.alone || last.in_scan || last.spatial.size() < 2)
    return s.fail("stage '" + last.stage.label() + "' has no rows");
  const std::vector<int64_t> levels = counted(0, static_cast<int64_t>(last.spatial.size()) - 2);
  const auto level = static_cast<size_t>(s.choose("at", levels.back(), levels));
  const int64_t rows = s.choose("rows", 1, {2, 4, 8, 16});
  Loops outer(last.spatial.begin(), last.spatial.begin() + static_cast<std::ptrdiff_t>(level) + 1);
  if (const Loop loop = outer.back(); rows > 1 && s.extent(loop).value_or(rows + 1) > rows)
    outer.back() = s.split(loop, rows, Tail::guard, loop.name() + "_t", loop.name() + "_r").outer;
  const Loop at = outer.back();
  Stages inside;
  for (auto nest = k.nests.rbegin() + 1; nest != k.nests.rend(); ++nest) {
    const std::string& label = nest->stage.label();
    if (nest->in_scan || !nest->temp)
      return s.fail("stage '" + label + "' cannot move to rows of the last one");
    // a nest of its own, inlined, at the rows
    const int64_t place = nest->pure() ? s.choose("place_" + label, 2, {0, 1}) : 2;
    if (place == 1) s.compute_inline(nest->stage);
    if (place == 2) s.compute_at(nest->stage, at);
    if (place == 2) keep_near(s, nest->stage);
    if (place == 2) inside.push_back(nest->stage);
  }
  for (const Nest& nest : k.nests) {
    if (nest.stage == last.stage || std::ranges::find(inside, nest.stage) != inside.end())
      map_inside(s, k, nest, at);
    else map_simply(s, k, nest);
  }
  s.parallelize(outer, last.stage.label() + "_p");
}

}  // namespace tw::generated
