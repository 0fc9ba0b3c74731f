// Loops for the threads, and nests of single stages, such as copies and maps.
#include <algorithm>

#include "ir/kernel/kernel.h"
#include "ir/kernel/sharing.h"
#include "ir/simplify.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

// A nest's loops fused to one, to see which addresses follow from its number without a division
class FusedNest {
 public:
  FusedNest(const ScheduleBuilder& s, const Loops& loops) : kernel_(s.kernel()) {
    for (const Loop& loop : loops) {
      names_.push_back(loop.name());
      extents_.push_back(s.extent(loop).value_or(0));
    }
  }

  bool divides(const stmt::Store& store) const {
    return !even(store.buffer, store.indices) || divides(store.value);
  }

 private:
  bool divides(const Expr& e) const {
    if (const auto* load = as<expr::Load>(e)) return !even(load->buffer, load->indices);
    if (const auto* loop = as<expr::Var>(e))
      return std::ranges::find(names_, loop->name) != names_.end();
    return any_operand(*e, [&](const Expr& operand) { return divides(operand); });
  }

  // True: the element's address advances by the same amount at each step.
  bool even(BufferId id, const std::vector<Expr>& index) const {
    const std::vector<Expr>& shape = kernel_.buffer(id).shape;
    Expr place(0);
    for (size_t i = 0; i < index.size(); ++i) place = place * shape[i] + index[i];
    place = simplify(place);
    std::optional<int64_t> next;  // distance by which the loops inside this one move it
    for (size_t i = names_.size(); i-- > 0;) {
      const auto term = linear_in(place, names_[i]);
      if (!term || (next && term->coefficient != *next)) return false;
      next = term->coefficient * extents_[i];
    }
    return true;
  }

  const Kernel& kernel_;
  std::vector<std::string> names_;
  std::vector<int64_t> extents_;  // 0: free, which is never fused
};

}  // namespace

void ScheduleBuilder::parallelize(const Loops& loops, const std::string& name, Inner inner) {
  Loops all = loops;
  std::erase_if(all, [&](const Loop& loop) { return !has(loop); });
  const auto count = static_cast<int64_t>(all.size());
  const auto spread = [&](int64_t outer) {  // with the first `outer` loops shared
    int64_t iterations = 1;
    for (int64_t i = 0; i < outer; ++i)
      iterations *= extent(all[static_cast<size_t>(i)]).value_or(target_->cores);
    return sharing(iterations, target_->cores);
  };
  const bool one_less = count > 1 && spreads_as_well(spread(count - 1), spread(count));
  int64_t fewest = !rules() ? 1 : one_less ? count - 1 : count;
  // Every iteration of a fused loop divides by all extents but the first, so free extents are not
  // fused. If it has few iterations, it is divided together with the loop inside.
  int64_t usual = 1;
  while (usual < count && extent(all[static_cast<size_t>(usual)])) ++usual;
  if (inner == Inner::apart && one_less) usual = std::min(usual, count - 1);
  fewest = std::min(fewest, usual);
  // A point may contain a value from another kernel.
  const int64_t fused = choose("parallel_" + name, std::min(usual, count), counted(fewest, count));
  all.resize(static_cast<size_t>(std::min(std::max(fused, fewest), count)));
  parallel(fuse(all, name));
}

void ScheduleBuilder::map_nest(const Stage& stage) {
  Loops loops = spatial_loops_of(stage);
  if (loops.empty()) return;
  const StoreRef store = store_of(stage);
  const int64_t vectors = choose("vectors_" + stage.label(), 1, {2, 4}),
                steps = choose("unroll_" + stage.label(), 1, {2, 4});
  int64_t lanes = target_->lanes(dtype_bytes(kernel_.buffer(store->buffer).dtype)) * vectors;
  const Loop last = loops.back();
  loops.pop_back();
  auto size = extent(last);
  if (size && *size <= lanes) {
    if (*size > 1) vectorize(last);
  } else {
    // A stage that reads its own buffer must not compute points twice.
    bool divides = size && *size % lanes == 0, carried = false;
    visit(store->value, [&](const Expr& e) {
      const auto* load = as<expr::Load>(e);
      carried |= load && load->buffer == store->buffer;
    });
    const Cut cut = split(last, lanes, divides || !size || carried ? Tail::guard : Tail::shift,
                          last.name() + "_o", last.name() + "_v");
    vectorize(cut.inner);
    loops.push_back(cut.outer);
  }
  if (steps > 1 && !loops.empty()) {
    const std::string line = loops.back().name();
    const Cut cut = split(loops.back(), steps, Tail::guard, line + "_s", line + "_u");
    unroll(cut.inner);
    loops.back() = cut.outer;
  }
  if (loops.size() > 1 && FusedNest(*this, loops).divides(*store_of(stage))) {
    parallelize(loops, stage.label() + "_p", Inner::apart);
    partition_edges(loops.back());
  } else {
    parallelize(loops, stage.label() + "_p");
  }
}

void ScheduleBuilder::map_nests(const Stages& stages) {
  for (const Stage& stage : stages)
    if (has(stage)) map_nest(stage);
}

}  // namespace tw
