#include "backends/device/launch.h"

#include <algorithm>
#include <set>
#include <span>

#include "backends/device/together.h"
#include "ir/kernel/guards.h"
#include "ir/schedule/interleave.h"

namespace tw::device {
namespace {

constexpr int64_t kMaxPrivateBytes = 64 << 10;  // bytes of one work-item

Error refuse(const std::string& why) { return make_error(DiagCode::unsupported, "{0}", why); }

void visit_buffers(const Stmt& s,
                   const std::function<void(BufferId, const std::vector<Expr>& indices)>& use) {
  if (const auto* store = as<stmt::Store>(s)) use(store->buffer, store->indices);
  visit_exprs(*s, [&](const Expr& e) {
    visit(e, [&](const Expr& n) {
      if (const auto* load = as<expr::Load>(n)) use(load->buffer, load->indices);
    });
  });
}

class Planner {
 public:
  Planner(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {}

  Expected<LaunchPlan> plan(const Stmt& body) {
    plan_ = {body, {}, {}, {Expr(1), Expr(1), Expr(1)}, {1, 1, 1}, 0};
    walk(body, {}, false);
    if (problem_.empty()) place_buffers();
    if (!problem_.empty()) return refuse(problem_);
    return plan_;
  }

 private:
  struct Use {
    std::vector<const stmt::Loop*> path;  // bound loops around the use
    std::vector<Expr> indices;
  };
  void fail(const std::string& why) {
    if (problem_.empty()) problem_ = why;
  }

  // `ordered`: an enclosing statement runs in order, so groups in here would have to wait for each
  // other.
  void walk(const Stmt& s, std::vector<const stmt::Loop*> bound, bool ordered) {
    const auto* loop = as<stmt::Loop>(s);
    if (loop && loop->kind == LoopKind::bind) enter(*loop, ordered), bound.push_back(loop);
    else if (loop) ordered = true;
    if (is<stmt::Sequence>(s) && children(s).size() > 1) ordered = true;
    if (is<stmt::Roles>(s)) return fail("roles are beyond this device");
    if (threads_together(*s, target_) > 1)
      return walk_instruction(get<stmt::Block>(s), std::move(bound));
    visit_buffers(s, [&](BufferId id, const std::vector<Expr>& indices) {
      uses_[id.index].push_back({bound, indices});
    });
    for (const Stmt& child : children(s)) walk(child, bound, ordered);
  }

  // Treats an instruction of several threads as a loop over them, in which each has its part of the
  // operands.
  void walk_instruction(const stmt::Block& block, std::vector<const stmt::Loop*> bound) {
    Ranges ranges;
    visit(kernel_.body, [&](const Stmt& n) {
      if (const auto* loop = as<stmt::Loop>(n))
        ranges[loop->var] = {Expr(0), loop->extent - Expr(1)};
    });
    auto parts = parts_of(kernel_, block, target_, ranges);
    if (!parts) return fail("block '" + block.name + "': " + error_text(parts.takeError()));
    for (const stmt::Loop* loop : bound) {
      const AxisPlace place = *axis_place(target_, loop->axis);
      if (!place.group && place.dim == 0)
        return fail("block '" + block.name + "' is done by threads together, inside of loop '" +
                    loop->var + "' over them");
    }
    bound.push_back(&*parts->threads);
    enter(*parts->threads, true);
    for (const auto& [name, operand] : parts->operands) {
      uses_[operand.buffer.index].push_back(
          {bound, parts->indices(name, var(parts->threads->var))});
    }
    instructions_.push_back(parts->threads);
  }

  void enter(const stmt::Loop& loop, bool ordered) {
    const std::optional<AxisPlace> place = axis_place(target_, loop.axis);
    if (!place)
      return fail("loop '" + loop.var + "' is bound to " + loop.axis +
                  ", which is no axis of work-groups (level block) or work-items (level thread)");
    const size_t dim = static_cast<size_t>(place->dim);
    const std::optional<int64_t> extent = as_const(loop.extent);
    if (place->group) {
      if (ordered)
        return fail("loop '" + loop.var +
                    "' over work-groups is inside of a loop or beside other statements: groups "
                    "cannot wait for each other");
      plan_.groups[dim] = is_const(plan_.groups[dim], 1) ? loop.extent
                                                         : max(plan_.groups[dim], loop.extent);
    } else {
      if (!extent) return fail("loop '" + loop.var + "' over work-items needs a constant extent");
      plan_.items[dim] = std::max(plan_.items[dim], *extent);
    }
    if (plan_.work_items() > target_.max_group)
      fail("a work-group would have " + std::to_string(plan_.work_items()) +
           " work-items, the device takes " + std::to_string(target_.max_group));
  }

  void place_buffers() {
    int64_t own_bytes = 0;
    for (const auto& [index, uses] : uses_) {
      const Buffer& buffer = kernel_.buffers[static_cast<size_t>(index)];
      const Space space = space_of(buffer, uses, plan_.thread_dims[index]);
      plan_.spaces[index] = space;
      if (space == Space::parameter || space == Space::workspace) continue;
      int64_t bytes = dtype_bytes(buffer.dtype);
      for (size_t d = 0; d < buffer.shape.size(); ++d) {
        if (!as_const(buffer.shape[d]))
          return fail("buffer '" + buffer.name + "' of scope " + buffer.scope +
                      " needs a constant shape");
        if (std::ranges::find(plan_.thread_dims[index], d) == plan_.thread_dims[index].end())
          bytes *= *as_const(buffer.shape[d]);
      }
      (space == Space::shared ? plan_.local_bytes : own_bytes) += bytes;
    }
    if (own_bytes > kMaxPrivateBytes)
      fail("a work-item would have " + std::to_string(own_bytes) +
           " bytes of its own, the limit is " + std::to_string(kMaxPrivateBytes));
    const int64_t most = target_.local_bytes;
    if (plan_.local_bytes > most)
      fail("a work-group would share " + std::to_string(plan_.local_bytes) +
           " bytes, the device has " + std::to_string(most));
  }

  static std::span<const stmt::Loop* const> below(const std::vector<const stmt::Loop*>& path,
                                                  const std::string& owner) {
    const auto at = std::ranges::find(path, owner, &stmt::Loop::var);
    return at == path.end() ? std::span(path)
                            : std::span(path).subspan(static_cast<size_t>(at - path.begin()) + 1);
  }

  // Finds the dimensions that count threads: every use indexes them by the enclosing loops over
  // threads. False: threads share elements.
  bool split_by_threads(const std::vector<Use>& uses, const std::string& per,
                        std::vector<size_t>& dims) const {
    std::map<std::string, size_t> dim_of;  // by axis
    for (const Use& use : uses)
      for (const stmt::Loop* loop : below(use.path, per)) {
        // A loop of one iteration counts no threads.
        if (axis_place(target_, loop->axis)->group || is_const(loop->extent, 1)) continue;
        const auto at = std::ranges::find_if(use.indices,
                                             [&](const Expr& e) { return is_var(e, loop->var); });
        if (at == use.indices.end()) return false;
        const auto d = static_cast<size_t>(at - use.indices.begin());
        if (dim_of.emplace(loop->axis, d).first->second != d) return false;
      }
    for (const Use& use : uses)
      for (const auto& [axis, d] : dim_of)
        if (std::ranges::none_of(below(use.path, per),
                                 [&](const stmt::Loop* loop) { return loop->axis == axis; }))
          return false;
    for (const auto& [axis, d] : dim_of) dims.push_back(d);
    std::ranges::sort(dims);
    return true;
  }

  Space space_of(const Buffer& buffer, const std::vector<Use>& uses,
                 std::vector<size_t>& thread_dims) {
    if (buffer.role != BufferRole::temp) return Space::parameter;
    if (buffer.scope == "global") return Space::workspace;
    if (buffer.scope == "thread") {
      const bool bound = std::ranges::any_of(uses,
                                             [](const Use& use) { return !use.path.empty(); });
      if (bound) fail("buffer '" + buffer.name + "' of scope thread is used in a bound loop");
      return Space::workspace;
    }
    const MemoryScope* scope = target_.find_scope(buffer.scope);
    if (!scope && buffer.scope != "stack" && buffer.scope != "register")
      fail("buffer '" + buffer.name + "' is in scope '" + buffer.scope +
           "', which the target does not have");
    // A buffer is shared when work-items meet in it: there are loops over them inside its owner.
    bool meets = false, by_item = false;
    for (const Use& use : uses) {
      for (const stmt::Loop* loop : below(use.path, buffer.per))
        meets |= !axis_place(target_, loop->axis)->group && !is_const(loop->extent, 1);
      for (const stmt::Loop* loop : use.path)
        by_item |= loop->var == buffer.per && !axis_place(target_, loop->axis)->group;
    }
    if (!meets && !(scope && scope->level == "block")) return Space::own;
    if (!scope && split_by_threads(uses, buffer.per, thread_dims)) return Space::own;
    thread_dims.clear();
    if (by_item)
      fail("buffer '" + buffer.name + "' is shared by the work-items below loop '" + buffer.per +
           "', but not by all of a group");
    const bool any = scope ? scope->level == "block"
                           : std::ranges::any_of(target_.scopes, [](const MemoryScope& m) {
                               return m.level == "block";
                             });
    if (!any)
      fail("buffer '" + buffer.name + "' of scope " + buffer.scope +
           " would be shared by work-items: the target has no memory of level block");
    return Space::shared;
  }

  const Kernel& kernel_;
  const Target& target_;
  LaunchPlan plan_;
  std::map<int32_t, std::vector<Use>> uses_;  // by buffer
  std::vector<LoopRef> instructions_;  // loops that stand for instructions of several threads
  std::string problem_;
};

bool holds_bound(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Stmt& n) {
    const auto* loop = as<stmt::Loop>(n);
    found |= loop && loop->kind == LoopKind::bind;
  });
  return found;
}

}  // namespace

std::optional<AxisPlace> axis_place(const Target& target, const std::string& axis) {
  AxisPlace place;
  const DeviceAxis* found = target.find_axis(axis);
  if (!found || (found->level != "block" && found->level != "thread")) return std::nullopt;
  place.group = found->level == "block";
  for (const DeviceAxis& a : target.axes) {
    if (a.name == axis) break;
    place.dim += a.level == found->level;
  }
  if (place.dim > 2) return std::nullopt;
  return place;
}

bool holds_loop_of(const Stmt& s, const Target& target, bool group) {
  bool found = false;
  visit(s, [&](const Stmt& n) {
    const auto* loop = as<stmt::Loop>(n);
    if (!loop || loop->kind != LoopKind::bind) return;
    const std::optional<AxisPlace> place = axis_place(target, loop->axis);
    found |= place && place->group == group && !is_const(loop->extent, 1);
  });
  return found;
}

bool synchronizes(const Stmt& s, const Target& target) {
  bool found = false;
  visit(s, [&](const Stmt& n) {
    found |= is<stmt::Barrier, stmt::Signal, stmt::Wait>(n);
    const auto* loop = as<stmt::Loop>(n);
    const bool repeats = loop && loop->kind != LoopKind::bind && !is_const(loop->extent, 1);
    const bool several = is<stmt::Sequence>(n) && children(n).size() > 1;
    if (repeats || several)
      for (const Stmt& child : children(n)) found |= holds_loop_of(child, target, false);
  });
  return found;
}

namespace {

Expected<std::vector<LaunchPlan>> cut(const Kernel& kernel, const Target& target) {
  std::vector<Stmt> bodies;
  bool open = false;  // the last launch is unbound: a statement without bound loops joins it
  for (const Stmt& s :
       is<stmt::Sequence>(kernel.body) ? children(kernel.body) : std::span(&kernel.body, 1)) {
    const bool bound = holds_bound(s);
    if (!bound && open) bodies.back() = make_sequence({bodies.back(), s});
    else bodies.push_back(s);
    open = !bound;
  }
  std::vector<LaunchPlan> plans;
  std::map<int32_t, size_t> launch_of;
  for (const Stmt& s : bodies) {
    Planner planner(kernel, target);
    TW_ASSIGN(LaunchPlan plan, planner.plan(s));
    for (const auto& [index, space] : plan.spaces) {
      if (space == Space::parameter || space == Space::workspace) continue;
      if (const auto [at, first] = launch_of.emplace(index, plans.size()); !first)
        return refuse("buffer '" + kernel.buffers[static_cast<size_t>(index)].name + "' of scope " +
                      kernel.buffers[static_cast<size_t>(index)].scope +
                      " is used in two launches");
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace

Expected<LaunchPlans> plan_launches(const Kernel& kernel, const Target& target) {
  LaunchPlans out{kernel.queues.empty() ? interleave_virtual_threads(kernel) : kernel, {}, {}};
  for (const std::string& symbol : out.kernel.symbols) out.ranges[symbol] = symbol_range(symbol);
  visit(out.kernel.body, [&](const Stmt& s) {
    if (const auto* loop = as<stmt::Loop>(s))
      out.ranges[loop->var] = {Expr(0), loop->extent - Expr(1)};
  });
  out.kernel.body = hoist_guards(
      rewrite_exprs(out.kernel.body, [&](const Expr& e) { return simplify(e, out.ranges); }));
  auto launches = cut(out.kernel, target);
  if (!launches) return refuse("kernel '" + kernel.name + "': " + error_text(launches.takeError()));
  out.launches = std::move(*launches);
  return out;
}

Expected<bool> runs_in_one_thread(const Kernel& kernel, const Target& target) {
  constexpr int64_t kMany = 256, kTypicalSymbol = 8;
  TW_ASSIGN(const LaunchPlans plans, plan_launches(kernel, target));
  for (const LaunchPlan& launch : plans.launches) {
    const bool alone = launch.work_items() == 1 &&
                       std::ranges::all_of(launch.groups,
                                           [](const Expr& e) { return is_const(e, 1); });
    if (!alone) continue;
    for (const StoreRef& store : stores_of(launch.body)) {
      int64_t points = 1;
      for (const Stmt& s : path_to(launch.body, store->label))
        if (const auto* loop = as<stmt::Loop>(s); loop && loop->role == AxisRole::spatial)
          points *= eval_int(loop->extent, [](std::string_view) { return kTypicalSymbol; });
      if (points >= kMany) return true;
    }
  }
  return false;
}

}  // namespace tw::device
