#include "kernels/schedule/builder.h"

#include <algorithm>

#include "ir/kernel/kernel.h"
#include "ir/kernel/sharing.h"
#include "ir/schedule/nest.h"
#include "ir/simplify.h"

namespace tw {

std::optional<int64_t> ScheduleBuilder::extent(const std::string& loop) const {
  Stmt found = find_loop(kernel_.body, loop);
  return found ? as_const(found->extent) : std::nullopt;
}

std::optional<int64_t> ScheduleBuilder::bytes_of(const std::string& buffer) const {
  const std::optional<BufferId> id = kernel_.find_buffer(buffer);
  if (!id) return std::nullopt;
  int64_t bytes = dtype_bytes(kernel_.buffer(*id).dtype);
  for (const Expr& e : kernel_.buffer(*id).shape) {
    if (!as_const(e)) return std::nullopt;
    bytes *= *as_const(e);
  }
  return bytes;
}

std::vector<std::string> ScheduleBuilder::loops_of(const std::string& label) const {
  std::vector<std::string> names;
  for (const Stmt& s : path_to(kernel_.body, label))
    if (s->kind == StmtKind::loop) names.push_back(s->var);
  return names;
}

std::vector<std::string> ScheduleBuilder::reduce_loops_of(const std::string& label) const {
  std::vector<std::string> names;
  for (const Stmt& s : path_to(kernel_.body, label))
    if (s->kind == StmtKind::loop && s->role == AxisRole::reduce) names.push_back(s->var);
  return names;
}

std::vector<std::string> ScheduleBuilder::spatial_loops_of(const std::string& label) const {
  std::vector<std::string> names;
  for (const Stmt& s : path_to(kernel_.body, label))
    if (s->kind == StmtKind::loop && s->role == AxisRole::spatial) names.push_back(s->var);
  return names;
}

int64_t ScheduleBuilder::choose(const std::string& knob, int64_t usual,
                                const std::vector<int64_t>& others) const {
  if (!choices_) return usual;
  const auto values = [&] {
    std::vector<std::vector<int64_t>> all = {{usual}};
    for (int64_t other : others) all.push_back({other});
    return all;
  };
  return choices_->take(knob, values).front();
}

std::vector<int64_t> ScheduleBuilder::choose(
    const std::string& knob,
    const std::function<std::vector<std::vector<int64_t>>()>& values) const {
  return choices_ ? choices_->take(knob, values) : values().front();
}

bool ScheduleBuilder::rules() const { return !choices_ || choices_->rules(); }

void ScheduleBuilder::add(Step step) {
  if (!failed_.empty()) return;
  Expected<Kernel> next = tw::apply(kernel_, step, target_);
  if (!next) {
    failed_ = take_diags(next.takeError());
    failed_.front().notes.push_back("step " + std::to_string(schedule_.steps.size() + 1) + ": " +
                                    print(step));
    failed_.front().notes.push_back("kernel:\n" + print(kernel_));
    return;
  }
  kernel_ = std::move(*next);
  schedule_.steps.push_back(std::move(step));
}

void ScheduleBuilder::fail(const std::string& reason) {
  if (failed_.empty()) failed_.push_back({DiagCode::illegal_schedule, reason, {}, {}});
}

void ScheduleBuilder::split(const std::string& loop, int64_t factor, Tail tail,
                            const std::string& outer, const std::string& inner) {
  add(step::Split{loop, factor, tail, outer, inner});
}

void ScheduleBuilder::reorder(std::vector<std::string> loops) {
  std::erase_if(loops, [&](const std::string& name) { return !has_loop(name); });
  if (loops.size() > 1) add(step::Reorder{std::move(loops)});
}

std::string ScheduleBuilder::fuse(std::vector<std::string> loops, const std::string& name) {
  std::erase_if(loops, [&](const std::string& loop) { return !has_loop(loop); });
  if (loops.empty()) return "";
  std::string fused = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    std::string next = i + 1 == loops.size() ? name : name + std::to_string(i);
    add(step::Fuse{fused, loops[i], next});
    fused = next;
  }
  return fused;
}

void ScheduleBuilder::vectorize(const std::string& loop) {
  const auto found = find_loop(kernel_.body, loop);
  if (!found) return;
  // A column alone, padded to a panel: all lanes have one place, which vectors cannot store to, and
  // all but the first are outside.
  if (found->role != AxisRole::reduce && !is_const(found->extent, 1))
    for (const Stmt& store : stores_of(found->body[0]))
      if (std::ranges::none_of(store->indices,
                               [&](const Expr& index) { return uses_var(index, loop); }))
        return unroll(loop);
  add(step::Vectorize{loop});
}
void ScheduleBuilder::unroll(const std::string& loop) {
  if (has_loop(loop)) add(step::Unroll{loop});
}
void ScheduleBuilder::unroll_part(std::string& loop) {
  const std::optional<int64_t> n = extent(loop);
  if (!n) return;
  const int64_t part = choose("unroll_" + loop, 1, {2, 4, 8});
  if (part == 1) return;
  split(loop, part, Tail::guard, loop + "s", loop + "t");
  unroll(loop + "t");
  loop += "s";
}
void ScheduleBuilder::parallel(const std::string& loop) {
  if (has_loop(loop)) add(step::Parallel{loop});
}
void ScheduleBuilder::bind(const std::string& loop, const std::string& axis) {
  if (has_loop(loop)) add(step::Bind{loop, axis});
}
void ScheduleBuilder::compute_at(const std::string& stage, const std::string& loop) {
  add(step::ComputeAt{stage, loop});
}
void ScheduleBuilder::compute_inline(const std::string& stage) { add(step::ComputeInline{stage}); }
void ScheduleBuilder::cache_write(const std::string& stage, const std::string& name,
                                  const std::string& scope) {
  add(step::CacheWrite{stage, name, scope});
}
void ScheduleBuilder::cache_read(const std::string& buffer, const std::string& stage,
                                 const std::string& name, const std::string& scope) {
  add(step::CacheRead{buffer, stage, name, scope});
}
void ScheduleBuilder::tensorize(const std::string& loop, const std::string& intrinsic,
                                const std::string& name) {
  add(step::Tensorize{loop, intrinsic, name});
}
void ScheduleBuilder::async_copy(const std::string& stage) { add(step::AsyncCopy{stage}); }
void ScheduleBuilder::pipeline(const std::string& loop, int64_t depth,
                               std::vector<std::string> stages) {
  add(step::Pipeline{loop, depth, std::move(stages)});
}
void ScheduleBuilder::set_scope(const std::string& buffer, const std::string& scope) {
  if (scope == "register") scopes_.push_back({buffer, scope});
  else add(step::SetScope{buffer, scope});
}
void ScheduleBuilder::virtual_thread(const std::string& loop) { add(step::VirtualThread{loop}); }
void ScheduleBuilder::roles(const std::string& loop, int64_t depth, step::RoleParts parts) {
  add(step::Roles{loop, depth, std::move(parts)});
}
void ScheduleBuilder::layout(const std::string& buffer, std::vector<std::string> dims,
                             std::vector<Expr> map) {
  add(step::Layout{buffer, std::move(dims), std::move(map)});
}
void ScheduleBuilder::rfactor(const std::string& stage, const std::string& loop,
                              const std::string& name) {
  add(step::RFactor{stage, loop, name});
}
bool ScheduleBuilder::try_add(Step step) {
  Expected<Kernel> next = tw::apply(kernel_, step);
  if (next) add(std::move(step));
  else llvm::consumeError(next.takeError());
  return bool(next);
}

void ScheduleBuilder::accumulate(const std::string& stage, const std::vector<std::string>& reduce,
                                 const std::vector<std::string>& tile, const std::string& lane) {
  std::vector<std::string> order = reduce, longest_first;
  for (const std::string& loop : tile) {
    const auto shorter = [&](const std::string& other) {
      return extent(other).value_or(0) < extent(loop).value_or(0);
    };
    longest_first.insert(std::ranges::find_if(longest_first, shorter), loop);
  }
  order.insert(order.end(), longest_first.begin(), longest_first.end());
  order.push_back(lane);
  reorder(order);
  if (!reduce.empty()) decompose(stage, reduce.front());
  for (const char* suffix : {"", "_init"}) {
    for (const std::string& loop : tile) unroll(loop + suffix);
    vectorize(lane + suffix);
  }
}
void ScheduleBuilder::decompose(const std::string& stage, const std::string& loop) {
  for (const Stmt& store : stores_of(kernel_.body))
    if (store->label == stage && store->init.defined() && has_loop(loop))
      return add(step::DecomposeReduction{stage, loop});
}

namespace {

struct Condition {
  Expr condition;
  Ranges ranges;  // of the loops around it
};

// Conditions of ifs, wheres and selects below the loop that use its variable.
std::vector<Condition> conditions_on(const Kernel& kernel, const std::string& loop) {
  std::vector<Condition> found;
  Ranges ranges;
  for (const std::string& symbol : kernel.symbols) ranges.emplace(symbol, symbol_range(symbol));
  std::function<void(const Stmt&, Ranges, bool)> walk = [&](const Stmt& s, Ranges around,
                                                            bool inside) {
    if (s->kind == StmtKind::loop) {
      around.insert_or_assign(s->var, Range{Expr(0), simplify(s->extent - Expr(1))});
      inside |= s->var == loop;
    }
    auto note = [&](const Expr& e) {
      if (inside && e.defined() && uses_var(e, loop)) found.push_back({e, around});
    };
    note(s->condition);
    note(s->where);
    if (s->value.defined())
      visit(s->value, [&](const Expr& e) {
        if (e->kind == ExprKind::select) note(e->args[0]);
      });
    for (const Stmt& child : s->body) walk(child, around, inside);
  };
  walk(kernel.body, ranges, false);
  return found;
}

// Every condition has one value while the loop runs from `front` to `end`.
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

bool ScheduleBuilder::decides(const std::string& loop) const {
  return !conditions_on(kernel_, loop).empty();
}

void ScheduleBuilder::partition_edges(const std::string& loop) {
  constexpr int64_t kMostCut = 3;
  auto n = extent(loop);
  std::vector<Condition> conditions = conditions_on(kernel_, loop);
  if (!n || *n < 2 || conditions.empty()) return;
  int64_t front = -1, back = -1;
  for (int64_t cut = 1; cut <= 2 * kMostCut && front < 0; ++cut)
    for (int64_t f = std::max<int64_t>(0, cut - kMostCut);
         f <= std::min(cut, kMostCut) && front < 0; ++f)
      if (cut < *n && (cut == *n - 1 || decided(conditions, loop, f, *n - cut + f)))
        front = f, back = cut - f;
  if (front < 0) return;
  if (front > 0 && back > 0) add(step::Partition{loop, front, back, "a", "z"});
  else add(step::Peel{loop, front + back, front == 0, front == 0 ? "z" : "a"});
  unroll(loop + "_a");
  unroll(loop + "_z");
}

void ScheduleBuilder::peel_last(const std::string& loop) {
  if (has_loop(loop) && !extent(loop)) try_add(step::Peel{loop, 1, true, "z"});
}

void ScheduleBuilder::parallelize(const std::vector<std::string>& loops, const std::string& name) {
  std::vector<std::string> all = loops;
  std::erase_if(all, [&](const std::string& loop) { return !has_loop(loop); });
  const auto count = static_cast<int64_t>(all.size());
  int64_t fewest = rules() ? std::max<int64_t>(1, count - 1) : 1;
  const auto spread = [&](int64_t outer) {  // of that many loops
    int64_t turns = 1;
    for (int64_t i = 0; i < outer; ++i)
      turns *= extent(all[static_cast<size_t>(i)]).value_or(target_->cores);
    return sharing(turns, target_->cores);
  };
  if (rules() && fewest < count && !spreads_as_well(spread(fewest), spread(count))) fewest = count;
  // A fused loop divides by the extents of all but the first, in every iteration: not by free ones.
  // Of few iterations it is cut with the loop inside.
  int64_t usual = 1;
  while (usual < count && extent(all[static_cast<size_t>(usual)])) ++usual;
  fewest = std::min(fewest, usual);
  // a point may have another one's number
  const int64_t fused = choose("parallel_" + name, std::min(usual, count), counted(fewest, count));
  all.resize(static_cast<size_t>(std::min(std::max(fused, fewest), count)));
  std::string loop = fuse(all, name);
  if (!loop.empty()) parallel(loop);
}

void ScheduleBuilder::map_nest(const std::string& label) {
  std::vector<std::string> loops = spatial_loops_of(label);
  if (loops.empty()) return;
  Stmt store;
  for (const Stmt& s : stores_of(kernel_.body))
    if (s->label == label) store = s;
  const int64_t vectors = choose("vectors_" + label, 1, {2, 4}),
                steps = choose("unroll_" + label, 1, {2, 4});
  int64_t lanes = target_->lanes(dtype_bytes(kernel_.buffer(store->buffer).dtype)) * vectors;
  std::string last = loops.back();
  loops.pop_back();
  auto size = extent(last);
  if (size && *size <= lanes) {
    if (*size > 1) vectorize(last);
  } else {
    // What it reads of itself is not there twice
    bool divides = size && *size % lanes == 0, carried = false;
    visit(store->value, [&](const Expr& e) {
      carried |= e->kind == ExprKind::load && e->buffer == store->buffer;
    });
    split(last, lanes, divides || !size || carried ? Tail::guard : Tail::shift, last + "_o",
          last + "_v");
    vectorize(last + "_v");
    loops.push_back(last + "_o");
  }
  if (steps > 1 && !loops.empty()) {
    const std::string line = loops.back();
    split(line, steps, Tail::guard, line + "_s", line + "_u");
    unroll(line + "_u");
    loops.back() = line + "_s";
  }
  parallelize(loops, label + "_p");
}

Expected<Schedule> ScheduleBuilder::finish() {
  for (const step::SetScope& scope : scopes_) add(scope);
  if (!failed_.empty()) return make_error(std::move(failed_));
  if (choices_) TW_TRY(sched::check_scopes(kernel_));
  return std::move(schedule_);
}

std::vector<int64_t> pool_window(const ScheduleBuilder& s) {
  std::vector<int64_t> window;
  const auto conv = s.kernel().find_buffer("conv");
  if (!conv) return window;
  const std::vector<Expr>& shape = s.kernel().buffer(*conv).shape;
  for (size_t i = 0; i + 3 < shape.size(); ++i)
    window.push_back(*as_const(shape[i + 2]) / *s.extent("s" + std::to_string(i)));
  return window;
}

bool takes_rows(const ScheduleBuilder& s, const std::string& left) {
  return s.bytes_of(left).value_or(0) > s.bytes_of("w").value_or(0);
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
