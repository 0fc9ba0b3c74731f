// Chains of stages over the same rows (softmax, normalisation, attention, transforms): all that the
// last stage needs of some rows is made at one of its loops.
#include <algorithm>

#include "autotune/spaces/generated.h"

namespace tw::generated {
namespace {

// Loops of the stage below `at`.
std::vector<std::string> below(const ScheduleBuilder& s, const std::string& label,
                               const std::string& at) {
  std::vector<std::string> loops = s.loops_of(label);
  const auto found = std::ranges::find(loops, at);
  if (found != loops.end()) loops.erase(loops.begin(), found + 1);
  return loops;
}

// A stage within the rows: sums in vectors of neighbours, or along the reduction where it has no
// neighbours.
void map_inside(ScheduleBuilder& s, const Structure& k, const Nest& nest, const std::string& at) {
  const std::vector<std::string> own = below(s, nest.label, at),
                                 reduce = s.reduce_loops_of(nest.label);
  std::vector<std::string> spatial;
  for (const std::string& loop : own)
    if (std::ranges::find(reduce, loop) == reduce.end()) spatial.push_back(loop);
  if (spatial.empty()) {
    if (nest.sums() && reduce.size() == 1 && s.extent(reduce.front()).value_or(1024) < 1024 &&
        s.choose_switch("fold_" + nest.label, true)) {
      s.decompose(nest.label, reduce.front());
      s.vectorize(reduce.front());
    }
    return;
  }
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(nest.store->buffer).dtype)) *
                        s.choose("vectors_" + nest.label, 1, {2, 4});
  std::string lane = spatial.back();
  if (s.extent(lane).value_or(lanes + 1) > lanes) {
    s.split(lane, lanes, Tail::guard, lane + "_o", lane + "_v");
    lane += "_v";
  }
  if (!reduce.empty()) s.accumulate(nest.label, reduce, {}, lane);
  else s.vectorize(lane);
}

}  // namespace

void sketch_rows(ScheduleBuilder& s, const Structure& k) {
  const Nest& last = k.nests.back();
  if (!last.reduce.empty() || !last.alone || last.in_scan || last.spatial.size() < 2)
    return s.fail("stage '" + last.label + "' has no rows");
  const std::vector<int64_t> levels = counted(0, static_cast<int64_t>(last.spatial.size()) - 2);
  const auto level = static_cast<size_t>(s.choose("at", levels.back(), levels));
  const int64_t rows = s.choose("rows", 1, {2, 4, 8, 16});
  std::vector<std::string> outer(last.spatial.begin(),
                                 last.spatial.begin() + static_cast<std::ptrdiff_t>(level) + 1);
  if (const std::string loop = outer.back(); rows > 1 && s.extent(loop).value_or(rows + 1) > rows) {
    s.split(loop, rows, Tail::guard, loop + "_t", loop + "_r");
    outer.back() = loop + "_t";
  }
  const std::string at = outer.back();
  std::vector<std::string> inside;
  for (auto nest = k.nests.rbegin() + 1; nest != k.nests.rend(); ++nest) {
    if (nest->in_scan || !nest->temp)
      return s.fail("stage '" + nest->label + "' cannot move to rows of the last one");
    // a nest of its own, inlined, at the rows
    const int64_t place = nest->pure() ? s.choose("place_" + nest->label, 2, {0, 1}) : 2;
    if (place == 1) s.compute_inline(nest->label);
    if (place == 2) s.compute_at(nest->label, at);
    if (place == 2) keep_near(s, nest->buffer);
    if (place == 2) inside.push_back(nest->label);
  }
  for (const Nest& nest : k.nests) {
    if (nest.label == last.label || std::ranges::find(inside, nest.label) != inside.end())
      map_inside(s, k, nest, at);
    else map_simply(s, k, nest);
  }
  s.parallelize(outer, last.label + "_p");
}

}  // namespace tw::generated
