#include "kernels/schedule/builder.h"

#include <algorithm>

#include "ir/kernel/kernel.h"
#include "ir/kernel/sharing.h"
#include "ir/schedule/constant_stages.h"
#include "ir/schedule/factor.h"
#include "ir/schedule/intrinsic.h"
#include "ir/schedule/nest.h"
#include "ir/simplify.h"
#include "kernels/common/register_tile.h"

namespace tw {
namespace {

std::vector<std::string> names_of(const Loops& loops) {
  std::vector<std::string> names;
  for (const Loop& loop : loops) names.push_back(loop.name());
  return names;
}

std::vector<std::string> labels_of(const Stages& stages) {
  std::vector<std::string> labels;
  for (const Stage& stage : stages) labels.push_back(stage.label());
  return labels;
}

}  // namespace

Expr ScheduleBuilder::any_extent(const Loop& loop) const {
  const LoopRef found = find_loop(kernel_.body, loop.name());
  return found ? found->extent : Expr();
}

std::optional<int64_t> ScheduleBuilder::extent(const Loop& loop) const {
  const LoopRef found = find_loop(kernel_.body, loop.name());
  return found ? as_const(found->extent) : std::nullopt;
}

const Buffer* ScheduleBuilder::find(const BufferName& buffer) const {
  const std::optional<BufferId> id = kernel_.find_buffer(buffer.name());
  return id ? &kernel_.buffer(*id) : nullptr;
}

const Buffer& ScheduleBuilder::buffer(const BufferName& buffer) const {
  const Buffer* found = find(buffer);
  TW_CHECK(found, "kernel {0} has no buffer '{1}'", kernel_.name, buffer.name());
  return *found;
}

std::optional<int64_t> ScheduleBuilder::bytes_of(const BufferName& buffer) const {
  const Buffer* found = find(buffer);
  return found ? bytes_of(*found) : std::nullopt;
}

std::optional<int64_t> ScheduleBuilder::bytes_of(const Buffer& buffer) {
  int64_t bytes = dtype_bytes(buffer.dtype);
  for (const Expr& e : buffer.shape) {
    if (!as_const(e)) return std::nullopt;
    bytes *= *as_const(e);
  }
  return bytes;
}

Stages ScheduleBuilder::stages() const {
  Stages all;
  for (const StoreRef& store : stores_of(kernel_.body))
    all.push_back({store->label, BufferName(kernel_.buffer(store->buffer).name)});
  return all;
}

StoreRef ScheduleBuilder::store_of(const Stage& stage) const {
  for (const StoreRef& store : stores_of(kernel_.body))
    if (store->label == stage.label()) return store;
  return {};
}

Expr ScheduleBuilder::factor_of(const Stage& stage, Factor side) const {
  return sched::factor_of(store_of(stage)->value, side);
}

bool ScheduleBuilder::reads_buffers(const Stage& stage, Factor side) const {
  const Expr factor = factor_of(stage, side);
  bool reads = false;
  if (factor.defined()) visit(factor, [&](const Expr& e) { reads |= is<expr::Load>(e); });
  return reads;
}

bool ScheduleBuilder::reads(const Expr& e, const BufferName& buffer) const {
  bool found = false;
  visit(e, [&](const Expr& n) {
    const auto* load = as<expr::Load>(n);
    found |= load && name_of(load->buffer) == buffer;
  });
  return found;
}

Loops ScheduleBuilder::loops_of(const Stage& stage) const {
  Loops loops;
  for (const Stmt& s : path_to(kernel_.body, stage.label()))
    if (const auto* loop = as<stmt::Loop>(s)) loops.push_back(Loop(loop->var));
  return loops;
}

Loops ScheduleBuilder::loops_inside(const Stage& stage, const Loop& loop) const {
  const Loops all = loops_of(stage);
  const auto around = std::ranges::find(all, loop);
  return around == all.end() ? Loops() : Loops(around + 1, all.end());
}

Loops ScheduleBuilder::reduce_loops_of(const Stage& stage) const {
  Loops loops;
  for (const Stmt& s : path_to(kernel_.body, stage.label()))
    if (const auto* loop = as<stmt::Loop>(s); loop && loop->role == AxisRole::reduce)
      loops.push_back(Loop(loop->var));
  return loops;
}

Loops ScheduleBuilder::spatial_loops_of(const Stage& stage) const {
  Loops loops;
  for (const Stmt& s : path_to(kernel_.body, stage.label()))
    if (const auto* loop = as<stmt::Loop>(s); loop && loop->role == AxisRole::spatial)
      loops.push_back(Loop(loop->var));
  return loops;
}

Loop ScheduleBuilder::moved(const Stage& stage, const Loop& loop) {
  return loop.defined() ? Loop(sched::axis_name(stage.label(), loop.name())) : loop;
}

Loops ScheduleBuilder::moved(const Stage& stage, const Loops& loops) {
  Loops all;
  for (const Loop& loop : loops) all.push_back(moved(stage, loop));
  return all;
}

Loops ScheduleBuilder::cached(const Stage& stage, const Loops& loops) {
  Loops all;
  for (const Loop& loop : loops) all.push_back(Loop(stage.label() + "_" + loop.name()));
  return all;
}

Loop ScheduleBuilder::init_of(const Loop& loop) {
  return loop.defined() ? Loop(sched::init_name(loop.name())) : loop;
}

Stage ScheduleBuilder::init_of(const Stage& stage) {
  return {sched::init_label(stage.label()), stage.buffer()};
}

Loop ScheduleBuilder::at_edge(const Loop& loop, Edge edge) {
  if (edge == Edge::none || !loop.defined()) return loop;
  return Loop(loop.name() + (edge == Edge::first ? "_a" : "_z"));
}

Loop ScheduleBuilder::prologue_of(const Loop& loop) {
  return loop.defined() ? Loop(loop.name() + "_pro") : loop;
}

int64_t ScheduleBuilder::choose(const std::string& knob, int64_t usual,
                                const std::vector<int64_t>& others) const {
  if (!open() || choices_->leaves(knob)) return usual;
  const auto values = [&] {
    std::vector<std::vector<int64_t>> all = {{usual}};
    for (int64_t other : others) all.push_back({other});
    return all;
  };
  return choices_->choose(knob, values).front();
}

std::vector<int64_t> ScheduleBuilder::choose(
    const std::string& knob,
    const std::function<std::vector<std::vector<int64_t>>()>& values) const {
  return open() ? choices_->choose(knob, values) : values().front();
}

bool ScheduleBuilder::rules() const { return !open() || choices_->rules(); }

void ScheduleBuilder::add(Step step) {
  if (!failed_.empty()) return;
  Expected<Kernel> next = tw::apply(kernel_, step, target_);
  if (!next) {
    failed_ = take_diags(next.takeError());
    failed_.front().notes.push_back("step " + std::to_string(schedule_.steps.size() + 1) + ": " +
                                    print(step));
    // A point of a space may well be illegal. Nobody reads its kernel.
    if (!open()) failed_.front().notes.push_back("kernel:\n" + print(kernel_));
    return;
  }
  kernel_ = std::move(*next);
  schedule_.steps.push_back(std::move(step));
}

void ScheduleBuilder::fail(const std::string& reason) {
  if (failed_.empty()) failed_.push_back({DiagCode::illegal_schedule, reason, {}, {}});
}

ScheduleBuilder::Cut ScheduleBuilder::split(const Loop& loop, int64_t factor, Tail tail,
                                            const std::string& outer, const std::string& inner) {
  add(step::Split{loop.name(), factor, tail, outer, inner});
  return {Loop(outer), Loop(inner)};
}

ScheduleBuilder::Cut ScheduleBuilder::split_sums(const Loop& loop, int64_t factor,
                                                 const std::string& outer,
                                                 const std::string& inner) {
  const Cut cut = split(loop, factor, Tail::guard, outer, inner);
  if (const Loop begun = init_of(loop); has(begun))
    split(begun, factor, Tail::guard, init_of(cut.outer).name(), init_of(cut.inner).name());
  return cut;
}

void ScheduleBuilder::reorder(Loops loops) {
  std::erase_if(loops, [&](const Loop& loop) { return !has(loop); });
  if (loops.size() > 1) add(step::Reorder{names_of(loops)});
}

Loop ScheduleBuilder::fuse(Loops loops, const std::string& name) {
  std::erase_if(loops, [&](const Loop& loop) { return !has(loop); });
  if (loops.empty()) return {};
  Loop fused = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    const Loop next(i + 1 == loops.size() ? name : name + std::to_string(i));
    add(step::Fuse{fused.name(), loops[i].name(), next.name()});
    fused = next;
  }
  return fused;
}

void ScheduleBuilder::vectorize(const Loop& loop) {
  const LoopRef found = find_loop(kernel_.body, loop.name());
  if (!found) return;
  // For a single column padded to a panel, all lanes have one place, which vectors cannot store to.
  // All lanes but the first are outside.
  if (found->role != AxisRole::reduce && !is_const(found->extent, 1))
    for (const StoreRef& store : stores_of(found->body))
      if (std::ranges::none_of(store->indices,
                               [&](const Expr& index) { return uses_var(index, loop.name()); }))
        return unroll(loop);
  add(step::Vectorize{loop.name()});
}

void ScheduleBuilder::unroll(const Loop& loop) {
  if (has(loop)) add(step::Unroll{loop.name()});
}

void ScheduleBuilder::unroll(const Loops& loops) {
  for (const Loop& loop : loops) unroll(loop);
}

Loop ScheduleBuilder::unroll_part(const Loop& loop, int64_t usual, bool whole) {
  const std::optional<int64_t> n = extent(loop);
  if (!n) return loop;
  std::vector<int64_t> others = {1, 2, 4, 8};
  std::erase_if(others, [&](int64_t part) { return part == usual || (whole && *n % part != 0); });
  const int64_t part = choose("unroll_" + loop.name(), usual, others);
  if (part == 1) return loop;
  const Cut cut = split(loop, part, Tail::guard, loop.name() + "s", loop.name() + "t");
  unroll(cut.inner);
  return cut.outer;
}

bool ScheduleBuilder::by_element(const SumInstruction& instruction) const {
  return instruction.defined() && instruction.rows == 1 && takes_elements(target());
}

Loop ScheduleBuilder::unroll_steps(const Loop& loop, const SumInstruction& instruction) {
  const bool whole = extent(loop).value_or(1) % kElementSteps == 0;
  return unroll_part(loop, by_element(instruction) && whole ? kElementSteps : 1,
                     instruction.defined());
}

void ScheduleBuilder::parallel(const Loop& loop) {
  if (has(loop)) add(step::Parallel{loop.name()});
}

void ScheduleBuilder::bind(const Loop& loop, const std::string& axis) {
  if (has(loop)) add(step::Bind{loop.name(), axis});
}

void ScheduleBuilder::compute_at(const Stage& stage, const Loop& loop) {
  add(step::ComputeAt{stage.label(), loop.name()});
}

void ScheduleBuilder::compute_inline(const Stage& stage) {
  add(step::ComputeInline{stage.label()});
}

Stage ScheduleBuilder::cache_write(const Stage& stage, const std::string& name,
                                   const std::string& scope) {
  add(step::CacheWrite{stage.label(), name, scope});
  return {name, BufferName(name)};
}

Stage ScheduleBuilder::cache_read(const BufferName& buffer, const Stage& stage,
                                  const std::string& name, const std::string& scope) {
  add(step::CacheRead{buffer.name(), stage.label(), name, scope});
  return {name, BufferName(name)};
}

ScheduleBuilder::Packed ScheduleBuilder::pack(const Stage& stage, Factor factor,
                                              const std::string& name, const std::string& scope,
                                              const std::vector<PackedDim>& dims) {
  Packed packed{{name, BufferName(name)}, {}};
  step::Pack step{stage.label(), factor, name, scope, {}, {}};
  // Nobody schedules a constant stage, so its names must leave room for those of later loops.
  const std::string prefix = scope == kConstantScope ? name + "." : "";
  for (const PackedDim& dim : dims) {
    step.map.push_back(dim.index);
    step.loops.push_back(prefix + dim.loop);
    packed.loops.push_back(Loop(step.loops.back()));
  }
  add(std::move(step));
  return packed;
}

void ScheduleBuilder::pad(const Loop& loop, int64_t factor) { pad(Loops{loop}, factor); }

void ScheduleBuilder::pad(const Loops& loops, int64_t factor) {
  add(step::Pad{names_of(loops), factor, true});
}

void ScheduleBuilder::pad_zeros(const Loop& loop, int64_t factor) {
  pad_zeros(Loops{loop}, factor);
}

void ScheduleBuilder::pad_zeros(const Loops& loops, int64_t factor) {
  add(step::Pad{names_of(loops), factor, false});
}

void ScheduleBuilder::pad_for(Combiner combiner, const Loop& loop, int64_t factor) {
  add(step::Pad{{loop.name()}, factor, false, combiner});
}

void ScheduleBuilder::widen(const Stage& stage, const std::vector<Parts>& parts,
                            Combiner combiner) {
  step::Widen step{stage.label(), {}, {}, combiner};
  for (const Parts& one : parts) {
    step.loops.push_back(one.loop.name());
    step.factors.push_back(one.factor);
  }
  add(std::move(step));
}

void ScheduleBuilder::narrow(const Stage& stage, Factor factor, DType type) {
  add(step::Narrow{stage.label(), factor, type});
}

bool ScheduleBuilder::retype(const BufferName& buffer, DType type) {
  return try_add(step::Retype{buffer.name(), type});
}

void ScheduleBuilder::skew(const Loop& loop, int64_t extent, const Expr& offset) {
  add(step::Skew{loop.name(), extent, {offset}});
}

void ScheduleBuilder::unguard(const Stage& stage, Factor factor) {
  add(step::Unguard{stage.label(), factor});
}

Stage ScheduleBuilder::recount(const Stage& stage, Factor factor, int64_t zero,
                               const std::string& name, const std::string& scope) {
  add(step::Recount{stage.label(), factor, zero, name, scope});
  return {name, BufferName(name)};
}

Stage ScheduleBuilder::rfactor(const Stage& stage, const Loop& loop, const std::string& name) {
  add(step::RFactor{stage.label(), loop.name(), name});
  return {name, BufferName(name)};
}

void ScheduleBuilder::replicate(const std::vector<BufferName>& buffers, int64_t copies,
                                const std::function<Expr(const Stage& reader)>& copy) {
  step::Replicate step{{}, copies, {}, {}};
  for (const BufferName& buffer : buffers) step.buffers.push_back(buffer.name());
  for (const Stage& stage : stages()) {
    const Stmt store = store_of(stage).stmt();
    if (std::ranges::find(buffers, stage.buffer()) != buffers.end())
      step.loops.push_back(replica_of(stage).name());
    else if (std::ranges::any_of(buffers, [&](const BufferName& buffer) {
               return sched::reads(store, *kernel_.find_buffer(buffer.name()));
             }))
      step.copy.push_back(copy(stage));
  }
  add(std::move(step));
}

void ScheduleBuilder::hoist(const Stage& stage, const Stage& before) {
  add(step::Hoist{stage.label(), before.label()});
}

void ScheduleBuilder::decompose(const Stage& stage, const Loop& loop) {
  const StoreRef store = store_of(stage);
  if (store && store->init.defined() && has(loop))
    add(step::DecomposeReduction{stage.label(), loop.name()});
}

void ScheduleBuilder::tensorize(const Loop& loop, const std::string& intrinsic,
                                const std::string& name) {
  add(step::Tensorize{loop.name(), intrinsic, name});
}

void ScheduleBuilder::virtual_thread(const Loop& loop) { add(step::VirtualThread{loop.name()}); }

void ScheduleBuilder::roles(const Loop& loop, int64_t depth, const std::vector<Part>& parts) {
  step::RoleParts all;
  for (const Part& part : parts) all.emplace_back(part.role, labels_of(part.stages));
  add(step::Roles{loop.name(), depth, std::move(all)});
}

void ScheduleBuilder::set_scope(const BufferName& buffer, const std::string& scope) {
  if (scope == "register") scopes_.push_back({buffer.name(), scope});
  else add(step::SetScope{buffer.name(), scope});
}

void ScheduleBuilder::async_copy(const Stage& stage) { add(step::AsyncCopy{stage.label()}); }

void ScheduleBuilder::pipeline(const Loop& loop, int64_t depth, const Stages& stages) {
  add(step::Pipeline{loop.name(), depth, labels_of(stages)});
}

void ScheduleBuilder::storage_align(const BufferName& buffer, int64_t dim, int64_t factor,
                                    int64_t offset) {
  add(step::StorageAlign{buffer.name(), dim, factor, offset});
}

void ScheduleBuilder::layout(const BufferName& buffer, std::vector<std::string> dims,
                             std::vector<Expr> map) {
  add(step::Layout{buffer.name(), std::move(dims), std::move(map)});
}

void ScheduleBuilder::layout(const BufferName& buffer, const Place& place) {
  const Buffer* found = find(buffer);
  if (!found) return;
  std::vector<std::string> dims;
  std::vector<Expr> at;
  for (size_t d = 0; d < found->shape.size(); ++d) {
    dims.push_back("d" + std::to_string(d));
    at.push_back(var(dims.back()));
  }
  std::vector<Expr> map = place(at);
  if (sound()) layout(buffer, std::move(dims), std::move(map));
}

void ScheduleBuilder::block(const BufferName& buffer, int64_t dim, int64_t factor,
                            const std::string& lane) {
  std::vector<std::string> lanes;
  for (const Stage& stage : stages()) {
    if (stage.buffer() != buffer) continue;
    if (!lane.empty()) {
      lanes.push_back(lane);
      continue;
    }
    const Loops loops = spatial_loops_of(stage);
    const std::string first = loops.empty() ? stage.label() + "0" : loops.front().name();
    const std::string stem = first.substr(0, first.find_last_not_of("0123456789") + 1);
    lanes.push_back(stem == first ? stem.substr(0, stem.size() - 1) + "l"
                                  : stem + std::to_string(loops.size()));
  }
  add(step::Block{buffer.name(), dim, factor, std::move(lanes)});
}

bool ScheduleBuilder::flatten(const Stage& stage, const std::string& loop) {
  return try_add(step::Flatten{stage.label(), loop});
}

bool ScheduleBuilder::try_add(Step step) {
  if (!sound()) return false;
  Expected<Kernel> next = tw::apply(kernel_, step);
  if (!next) return llvm::consumeError(next.takeError()), false;
  kernel_ = std::move(*next);
  schedule_.steps.push_back(std::move(step));
  return true;
}

void ScheduleBuilder::accumulate(const Stage& stage, const Loops& reduce, const Loops& tile,
                                 const Loop& lane, const SumInstruction& instruction) {
  if (instruction.rows > 1 &&
      !(extent(instruction.row) == instruction.rows && extent(lane) == instruction.columns))
    return accumulate_rows(stage, reduce, tile, lane, instruction);
  Loops order = reduce, longest_first;
  for (const Loop& loop : tile) {
    const auto shorter = [&](const Loop& other) {
      return extent(other).value_or(0) < extent(loop).value_or(0);
    };
    longest_first.insert(std::ranges::find_if(longest_first, shorter), loop);
  }
  order.insert(order.end(), longest_first.begin(), longest_first.end());
  if (instruction.row.defined()) order.push_back(instruction.row);
  order.push_back(lane);
  if (instruction.depth.defined()) order.push_back(instruction.depth);
  reorder(order);
  if (!reduce.empty()) decompose(stage, reduce.front());
  unroll(tile);
  if (instruction.defined()) add_block(stage, lane, instruction);
  else vectorize(lane);
  for (const Loop& loop : tile) unroll(init_of(loop));
  if (!instruction.row.defined()) return vectorize(init_of(lane));
  unroll({init_of(instruction.row), init_of(lane)});  // a register holds rows and lanes
}

void ScheduleBuilder::make_adjacent(const Stage& stage, const Loop& row, const Loop& lane,
                                    const SumInstruction& instruction) {
  const StoreRef store = store_of(stage);
  if (!store) return fail("there is no stage '" + stage.label() + "' for an instruction");
  layout(stage.buffer(), [&](const std::vector<Expr>& at) {
    std::vector<Expr> place, blocks, within;
    const auto cut = [&](const Expr& e, int64_t by) {
      blocks.push_back(floor_div(e, Expr(by)));
      within.push_back(floor_mod(e, Expr(by)));
    };
    for (size_t d = 0; d < at.size(); ++d)
      if (uses_var(store->indices[d], row.name())) cut(at[d], instruction.rows);
      else if (uses_var(store->indices[d], lane.name())) cut(at[d], instruction.columns);
      else place.push_back(at[d]);
    if (blocks.size() != 2)
      fail("the rows and lanes of stage '" + stage.label() + "' are not two dimensions");
    place.insert(place.end(), blocks.begin(), blocks.end());
    place.insert(place.end(), within.begin(), within.end());
    return place;
  });
}

void ScheduleBuilder::accumulate_rows(const Stage& stage, const Loops& reduce, Loops tile,
                                      const Loop& lane, SumInstruction instruction) {
  make_adjacent(stage, instruction.row, lane, instruction);
  if (!sound()) return;
  const auto part = [&](const Loop& loop, int64_t by) {
    if (extent(loop) == by) return loop;
    const Cut halves = split(loop, by, Tail::guard, loop.name() + "b", loop.name() + "t");
    tile.push_back(halves.outer);
    return halves.inner;
  };
  instruction.row = part(instruction.row, instruction.rows);
  accumulate(stage, reduce, tile, part(lane, instruction.columns), instruction);
}

void ScheduleBuilder::add_block(const Stage& stage, const Loop& lane,
                                const SumInstruction& instruction) {
  Loop columns = instruction.row.defined() ? instruction.row : lane;
  if (!instruction.row.defined() && extent(lane) != instruction.columns) {
    const Cut cut = split(lane, instruction.columns, Tail::guard, lane.name() + "o",
                          lane.name() + "i");
    unroll(cut.outer);
    columns = cut.inner;
  }
  tensorize(columns, instruction.intrinsic, stage.label() + "_block");
}

namespace {

// An expression that uses the variable of a loop, and the ranges of the variables there
struct Condition {
  Expr condition;
  Ranges ranges;
};
using Note = std::function<void(const Expr&)>;

// The expressions with the loop's variable that `look` notes in the statements inside the loop
std::vector<Condition> conditions_in(
    const Kernel& kernel, const std::string& loop,
    const std::function<void(const Stmt&, const Note& note)>& look) {
  std::vector<Condition> found;
  Ranges ranges;
  for (const std::string& symbol : kernel.symbols) ranges.emplace(symbol, symbol_range(symbol));
  std::function<void(const Stmt&, Ranges, bool)> walk = [&](const Stmt& s, Ranges around,
                                                            bool inside) {
    if (const auto* nested = as<stmt::Loop>(s)) {
      around.insert_or_assign(nested->var, Range{Expr(0), simplify(nested->extent - Expr(1))});
      inside |= nested->var == loop;
    }
    if (inside)
      look(s, [&](const Expr& e) {
        if (e.defined() && uses_var(e, loop)) found.push_back({e, around});
      });
    for (const Stmt& child : children(s)) walk(child, around, inside);
  };
  walk(kernel.body, ranges, false);
  return found;
}

// Conditions of ifs, wheres and selects
std::vector<Condition> conditions_on(const Kernel& kernel, const std::string& loop) {
  return conditions_in(kernel, loop, [](const Stmt& s, const Note& note) {
    if (const auto* guard = as<stmt::If>(s)) note(guard->condition);
    const auto* store = as<stmt::Store>(s);
    if (!store) return;
    note(store->where);
    visit(store->value, [&](const Expr& e) {
      if (const auto* select = as<expr::Select>(e)) note(select->condition);
    });
  });
}

// Conditions that decide which term of a load's index counts: the comparison of a minimum or
// maximum, and the quotient of a remainder
std::vector<Condition> index_conditions_on(const Kernel& kernel, const std::string& loop) {
  return conditions_in(kernel, loop, [](const Stmt& s, const Note& note) {
    const auto* store = as<stmt::Store>(s);
    if (!store) return;
    const auto note_terms = [&](const Expr& e) {
      const auto* binary = as<expr::Binary>(e);
      if (!binary) return;
      const bool bound = binary->op == BinaryOp::min || binary->op == BinaryOp::max;
      if (bound) note(le(binary->a, binary->b));
      if (binary->op == BinaryOp::floor_mod) note(floor_div(binary->a, binary->b));
    };
    visit(store->value, [&](const Expr& e) {
      if (const auto* load = as<expr::Load>(e))
        for (const Expr& index : load->indices) visit(index, note_terms);
    });
  });
}

// True: every condition has one value while the loop runs from `front` to `end`.
bool decided(const std::vector<Condition>& conditions, const std::string& loop, int64_t front,
             int64_t end) {
  return std::ranges::all_of(conditions, [&](const Condition& c) {
    Ranges ranges = c.ranges;
    ranges.insert_or_assign(loop, Range{Expr(front), Expr(end - 1)});
    Expr e = simplify(c.condition, ranges);
    return is_const(e, 0) || is_const(e, 1) || !uses_var(e, loop);
  });
}

}  // namespace

bool ScheduleBuilder::decides(const Loop& loop) const {
  return !conditions_on(kernel_, loop.name()).empty();
}

void ScheduleBuilder::partition_edges(const Loop& loop, Edges edges) {
  constexpr int64_t kMostCut = 3;
  auto n = extent(loop);
  const std::vector<Condition> conditions = edges == Edges::conditions
                                                ? conditions_on(kernel_, loop.name())
                                                : index_conditions_on(kernel_, loop.name());
  if (!n || *n < 2 || conditions.empty()) return;
  int64_t front = -1, back = -1;
  for (int64_t cut = 1; cut <= 2 * kMostCut && front < 0; ++cut)
    for (int64_t f = std::max<int64_t>(0, cut - kMostCut);
         f <= std::min(cut, kMostCut) && front < 0; ++f)
      if (cut < *n && (cut == *n - 1 || decided(conditions, loop.name(), f, *n - cut + f)))
        front = f, back = cut - f;
  if (front < 0) return;
  if (front > 0 && back > 0) add(step::Partition{loop.name(), front, back, "a", "z"});
  else add(step::Peel{loop.name(), front + back, front == 0, front == 0 ? "z" : "a"});
  unroll(at_edge(loop, Edge::first));
  unroll(at_edge(loop, Edge::last));
}

void ScheduleBuilder::peel_last(const Loop& loop) {
  if (has(loop) && !extent(loop)) try_add(step::Peel{loop.name(), 1, true, "z"});
}

void ScheduleBuilder::specialize_one(const Loop& loop, const Expr& extent) {
  if (!extent.defined() || !has(loop)) return;
  std::vector<std::string> symbols;
  bool product = true;
  visit(extent, [&](const Expr& e) {
    const auto* symbol = as<expr::Var>(e);
    if (symbol) symbols.push_back(symbol->name);
    product &= symbol || as_binary(e, BinaryOp::mul);
  });
  std::ranges::sort(symbols);
  const auto [rest, end] = std::ranges::unique(symbols);
  symbols.erase(rest, end);
  if (product && !symbols.empty())
    try_add(step::Specialize{loop.name(), 1, std::move(symbols), "one"});
}

Expected<Schedule> ScheduleBuilder::finish() {
  for (const step::SetScope& scope : scopes_) add(scope);
  if (!failed_.empty()) return make_error(std::move(failed_));
  if (choices_) {
    TW_TRY(sched::check_scopes(kernel_));
    TW_TRY(check_instructions(kernel_, *target_));
    choices_->keep(std::make_shared<const RunKernel>(take_out_constant_stages(kernel_)));
  }
  return std::move(schedule_);
}

bool takes_rows(const ScheduleBuilder& s, const BufferName& left, const BufferName& weights) {
  return s.bytes_of(left).value_or(0) > s.bytes_of(weights).value_or(0);
}

int64_t tile_of(std::optional<int64_t> extent, int64_t most) {
  if (!extent) return 1;
  if (*extent <= most) return *extent;
  for (int64_t t = most; 2 * t >= most; --t)
    if (*extent % t == 0) return t;
  int64_t tiles = (*extent + most - 1) / most;
  return (*extent + tiles - 1) / tiles;
}

}  // namespace tw
