// Loops for the threads, and nests of single stages, such as copies and maps.
#include <algorithm>

#include "ir/kernel/kernel.h"
#include "ir/kernel/sharing.h"
#include "ir/simplify.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

Expr place_in(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr place(0);
  for (size_t i = 0; i < indices.size(); ++i) place = place * buffer.shape[i] + indices[i];
  return place;
}

constexpr int64_t kLongRow = 16;  // elements, for which a row is cut

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
    const Expr place = simplify(place_in(kernel_.buffer(id), index));
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

// The distance by which `place` moves with the loop's variable inside blocks of `block` iterations;
// nullopt: it varies. The blocks begin with multiples of their size, or, not `aligned`, anywhere.
std::optional<int64_t> step_in_block(const Expr& place, const std::string& variable, int64_t block,
                                     bool aligned) {
  const Expr base = var("block"), inside = var("inside");
  const Ranges ranges = {{"inside", {Expr(0), Expr(block - 1)}}, {"block", {Expr(0), Expr()}}};
  const Expr moved = substitute(place, variable, (aligned ? base * Expr(block) : base) + inside);
  const auto term = linear_in(simplify(moved, ranges), "inside");
  return term ? std::optional(term->coefficient) : std::nullopt;
}

// The n of `variable // n` or `variable % n`, if all loads that depend on the variable do so by
// that
std::optional<int64_t> divisor_in_loads(const StoreRef& store, const std::string& variable,
                                        BinaryOp op) {
  std::optional<int64_t> found;
  bool other = false;
  visit(store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (!load) return;
    for (const Expr& index : load->indices) {
      if (!uses_var(index, variable)) continue;
      const auto* binary = as<expr::Binary>(index);
      const auto n = binary && binary->op == op && is_var(binary->a, variable) ? as_const(binary->b)
                                                                               : std::nullopt;
      other |= !n || (found && *found != *n);
      found = n;
    }
  });
  return other ? std::nullopt : found;
}

}  // namespace

// A copy that reads along another loop than it writes along
struct ScheduleBuilder::Transposition {
  Loop along;     // the loop that the source is contiguous in
  int64_t block;  // iterations of both loops that are transposed in registers
};

std::optional<ScheduleBuilder::Transposition> ScheduleBuilder::transposition(
    const Stage& stage, const Loops& loops) const {
  constexpr int64_t kLeast = 4, kMost = 16;  // the code generator transposes up to 16 vectors
  const StoreRef store = store_of(stage);
  const auto* load = as<expr::Load>(store->value);
  if (!load || store->combiner != Combiner::none || store->where.defined()) return std::nullopt;
  const Buffer &from = kernel_.buffer(load->buffer), &to = kernel_.buffer(store->buffer);
  const auto last = extent(loops.back());
  if (from.dtype != to.dtype || load->buffer == store->buffer || !last) return std::nullopt;
  const Expr place = place_in(from, load->indices);
  for (const Loop& loop : loops) {
    const auto size = extent(loop);
    if (loop == loops.back() || !size) continue;
    const int64_t most = std::min<int64_t>(
        {kMost, target_->lanes(dtype_bytes(to.dtype)), *last, *size});
    // Blocks of the source, such as those of channels, begin with those of the loop.
    for (int64_t block = kMost; block >= kLeast; block /= 2) {
      if (block > most) continue;
      const auto rows = step_in_block(place, loops.back().name(), block, *last % block == 0);
      if (rows && *rows != 0 && *rows != 1 &&
          step_in_block(place, loop.name(), block, *size % block == 0) == 1)
        return Transposition{loop, block};
    }
  }
  return std::nullopt;
}

bool ScheduleBuilder::reads_along(const Stage& stage, const Loop& loop) const {
  bool found = false;
  const StoreRef store = store_of(stage);
  if (!store) return false;
  visit(store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (!load) return;
    const Expr place = simplify(place_in(kernel_.buffer(load->buffer), load->indices));
    const auto term = linear_in(place, loop.name());
    found |= term && term->coefficient == 1;
  });
  return found;
}

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
  if (const auto transposed = transposition(stage, loops))
    if (choose_switch("transpose_" + stage.label(), true))
      return map_transposed(stage, *transposed, loops);
  if (const auto size = extent(loops.back());
      size && *size >= kLongRow && *size % 2 == 0 && !store->where.defined() &&
      divisor_in_loads(store, loops.back().name(), BinaryOp::floor_div) == 2)
    if (choose_switch("doubled_" + stage.label(), true)) return map_doubled(stage, loops);
  const int64_t vectors = choose("vectors_" + stage.label(), 1, {2, 4}),
                steps = choose("unroll_" + stage.label(), 1, {2, 4});
  int64_t lanes = target_->lanes(dtype_bytes(kernel_.buffer(store->buffer).dtype)) * vectors;
  const Loop last = straighten(stage, loops);
  loops.pop_back();
  auto size = extent(last);
  if (size && *size <= lanes) {
    if (*size > 1) vectorize(last);
  } else {
    const Cut cut = split_blocks(stage, last, lanes, last.name() + "_o", last.name() + "_v");
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

// A row that repeats what it reads after some elements is cut there. One that begins or ends with
// elements from elsewhere loses them. Returns the loop of the rest.
Loop ScheduleBuilder::straighten(const Stage& stage, Loops& loops) {
  const Loop last = loops.back();
  const auto size = extent(last);
  if (size.value_or(0) < kLongRow) return last;
  if (const auto period = divisor_in_loads(store_of(stage), last.name(), BinaryOp::floor_mod);
      period && *period < *size && *size % *period == 0) {
    const Cut cut = split(last, *period, Tail::guard, last.name() + "_t", last.name() + "_r");
    loops.back() = cut.outer;
    loops.push_back(cut.inner);
    return cut.inner;
  }
  partition_edges(last, Edges::indices);
  return last;
}

// Every element that the row reads is written twice: vectors along what is read, which one store
// writes in turn.
void ScheduleBuilder::map_doubled(const Stage& stage, Loops loops) {
  const Loop last = loops.back();
  const Cut pairs = split(last, 2, Tail::guard, last.name() + "_q", last.name() + "_f");
  const int64_t size = *extent(pairs.outer),
                lanes = target_->lanes(dtype_bytes(kernel_.buffer(store_of(stage)->buffer).dtype));
  const Cut cut = split_blocks(stage, pairs.outer, std::min<int64_t>(lanes, size),
                               last.name() + "_o", last.name() + "_v");
  loops.back() = cut.outer;
  map_block(stage, loops, pairs.inner, cut.inner);
}

void ScheduleBuilder::map_transposed(const Stage& stage, const Transposition& how, Loops loops) {
  const auto cut = [&](const Loop& loop) {
    return split_blocks(stage, loop, how.block, loop.name() + "_o", loop.name() + "_v");
  };
  const Cut rows = cut(how.along), columns = cut(loops.back());
  *std::ranges::find(loops, how.along) = rows.outer;
  loops.back() = columns.outer;
  map_block(stage, loops, rows.inner, columns.inner);
}

void ScheduleBuilder::map_block(const Stage& stage, const Loops& loops, const Loop& unrolled,
                                const Loop& lane) {
  Loops order = loops;
  order.insert(order.end(), {unrolled, lane});
  reorder(order);
  unroll(unrolled);
  vectorize(lane);
  parallelize(loops, stage.label() + "_p", Inner::apart);
}

ScheduleBuilder::Cut ScheduleBuilder::split_blocks(const Stage& stage, const Loop& loop,
                                                   int64_t block, const std::string& outer,
                                                   const std::string& inner) {
  const StoreRef store = store_of(stage);
  const auto size = extent(loop);
  bool reads_itself = false;
  visit(store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    reads_itself |= load && load->buffer == store->buffer;
  });
  const bool shifts = size && *size % block != 0 && !reads_itself;
  return split(loop, block, shifts ? Tail::shift : Tail::guard, outer, inner);
}

void ScheduleBuilder::map_nests(const Stages& stages) {
  for (const Stage& stage : stages)
    if (has(stage)) map_nest(stage);
}

}  // namespace tw
