#include "backends/device/launch.h"

#include <algorithm>
#include <set>

namespace tw {
namespace {

constexpr int64_t kMaxPrivateBytes = 64 << 10;  // of one work-item

Error refuse(const std::string& why) { return make_error(DiagCode::unsupported, "{0}", why); }

void visit_buffers(const StmtNode& s, const std::function<void(BufferId)>& use) {
  if (s.kind == StmtKind::store) use(s.buffer);
  const auto loads = [&](const Expr& e) {
    if (e.defined()) visit(e, [&](const Expr& n) { if (n->kind == ExprKind::load) use(n->buffer); });
  };
  for (const Expr& e : {s.extent, s.condition, s.value, s.where, s.init}) loads(e);
  for (const Expr& e : s.indices) loads(e);
}

class Planner {
 public:
  Planner(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {}

  Expected<LaunchPlan> plan(const Stmt& body) {
    plan_ = {body, {}, {Expr(1), Expr(1), Expr(1)}, {1, 1, 1}, 0};
    walk(body, {}, false);
    if (problem_.empty()) place_buffers();
    if (!problem_.empty()) return refuse(problem_);
    return plan_;
  }
  const std::map<int32_t, std::vector<std::vector<const StmtNode*>>>& uses() const { return uses_; }

 private:
  void fail(const std::string& why) { if (problem_.empty()) problem_ = why; }

  // `ordered`: something outside runs in order, so that groups in here would have to wait for each other.
  void walk(const Stmt& s, std::vector<const StmtNode*> bound, bool ordered) {
    if (s->kind == StmtKind::loop && s->loop_kind == LoopKind::bind) enter(*s, ordered), bound.push_back(s.get());
    else if (s->kind == StmtKind::loop) ordered = true;
    if (s->kind == StmtKind::block && s->body.size() > 1) ordered = true;
    if (s->kind == StmtKind::roles || s->kind == StmtKind::signal || s->kind == StmtKind::wait || s->async)
      return fail("roles, tokens and asynchronous copies are beyond this device");
    visit_buffers(*s, [&](BufferId id) { uses_[id.index].push_back(bound); });
    for (const Stmt& child : s->body) walk(child, bound, ordered);
  }

  void enter(const StmtNode& loop, bool ordered) {
    const std::optional<AxisPlace> place = axis_place(target_, loop.axis);
    if (!place) return fail("loop '" + loop.var + "' is bound to " + loop.axis + ", which is no axis of work-groups (level block) or work-items (level thread)");
    const size_t dim = static_cast<size_t>(place->dim);
    const std::optional<int64_t> extent = as_const(loop.extent);
    if (place->group) {
      if (ordered) return fail("loop '" + loop.var + "' over work-groups is inside of a loop or beside other statements: groups cannot wait for each other");
      plan_.groups[dim] = is_const(plan_.groups[dim], 1) ? loop.extent : max(plan_.groups[dim], loop.extent);
    } else {
      if (!extent) return fail("loop '" + loop.var + "' over work-items needs a constant extent");
      plan_.items[dim] = std::max(plan_.items[dim], *extent);
    }
    if (plan_.work_items() > target_.max_group)
      fail("a work-group would have " + std::to_string(plan_.work_items()) + " work-items, the device takes " + std::to_string(target_.max_group));
  }

  void place_buffers() {
    int64_t own_bytes = 0;
    for (const auto& [index, paths] : uses_) {
      const Buffer& buffer = kernel_.buffers[static_cast<size_t>(index)];
      const Space space = space_of(buffer, paths);
      plan_.spaces[index] = space;
      if (space == Space::parameter || space == Space::workspace) continue;
      int64_t bytes = (dtype_bytes(buffer.dtype));
      for (const Expr& extent : buffer.shape) {
        if (!as_const(extent)) return fail("buffer '" + buffer.name + "' of scope " + buffer.scope + " needs a constant shape");
        bytes *= *as_const(extent);
      }
      (space == Space::shared ? plan_.local_bytes : own_bytes) += bytes;
    }
    if (own_bytes > kMaxPrivateBytes) fail("a work-item would have " + std::to_string(own_bytes) + " bytes of its own, the limit is " + std::to_string(kMaxPrivateBytes));
    const int64_t most = target_.local_bytes;
    if (plan_.local_bytes > most) fail("a work-group would share " + std::to_string(plan_.local_bytes) + " bytes, the device has " + std::to_string(most));
  }

  Space space_of(const Buffer& buffer, const std::vector<std::vector<const StmtNode*>>& paths) {
    if (buffer.role != BufferRole::temp) return Space::parameter;
    if (buffer.scope == "global") return Space::workspace;
    if (buffer.scope == "thread") {
      const bool bound = std::ranges::any_of(paths, [](const auto& path) { return !path.empty(); });
      if (bound) fail("buffer '" + buffer.name + "' of scope thread is used in a bound loop");
      return Space::workspace;
    }
    const MemoryScope* scope = target_.find_scope(buffer.scope);
    if (!scope && buffer.scope != "stack" && buffer.scope != "register") fail("buffer '" + buffer.name + "' is in scope '" + buffer.scope + "', which the target does not have");
    // Shared where work-items meet in it: loops over them inside of its owner.
    bool meets = false;
    for (const auto& path : paths) {
      const auto owner = std::ranges::find_if(path, [&](const StmtNode* loop) { return loop->var == buffer.per; });
      for (auto at = owner == path.end() ? path.begin() : owner + 1; at != path.end(); ++at) meets |= !axis_place(target_, (*at)->axis)->group && !is_const((*at)->extent, 1);
      const bool by_item = owner != path.end() && !axis_place(target_, (*owner)->axis)->group;
      if (meets && by_item) fail("buffer '" + buffer.name + "' is shared by the work-items below loop '" + buffer.per + "', but not by all of a group");
    }
    if (!meets && !(scope && scope->level == "block")) return Space::own;
    const bool any = scope ? scope->level == "block" : std::ranges::any_of(target_.scopes, [](const MemoryScope& m) { return m.level == "block"; });
    if (!any) fail("buffer '" + buffer.name + "' of scope " + buffer.scope + " would be shared by work-items: the target has no memory of level block");
    return Space::shared;
  }

  const Kernel& kernel_;
  const Target& target_;
  LaunchPlan plan_;
  std::map<int32_t, std::vector<std::vector<const StmtNode*>>> uses_;   // by buffer: the bound loops around each use
  std::string problem_;
};

bool holds_bound(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Stmt& n) { found |= n->kind == StmtKind::loop && n->loop_kind == LoopKind::bind; });
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
    if (n->kind != StmtKind::loop || n->loop_kind != LoopKind::bind) return;
    const std::optional<AxisPlace> place = axis_place(target, n->axis);
    found |= place && place->group == group && !is_const(n->extent, 1);
  });
  return found;
}

bool synchronizes(const Stmt& s, const Target& target) {
  bool found = false;
  visit(s, [&](const Stmt& n) {
    found |= n->kind == StmtKind::barrier;
    const bool repeats = n->kind == StmtKind::loop && n->loop_kind != LoopKind::bind && !is_const(n->extent, 1);
    const bool several = n->kind == StmtKind::block && n->body.size() > 1;
    if (repeats || several)
      for (const Stmt& child : n->body) found |= holds_loop_of(child, target, false);
  });
  return found;
}

Expected<std::vector<LaunchPlan>> plan_launches(const Kernel& kernel, const Stmt& body, const Target& target) {
  std::vector<Stmt> bodies;
  bool open = false;   // the last one is unbound: a statement without bound loops joins it
  for (const Stmt& s : body->kind == StmtKind::block ? body->body : std::vector<Stmt>{body}) {
    const bool bound = holds_bound(s);
    if (!bound && open) bodies.back() = make_block({bodies.back(), s});
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
        return refuse("buffer '" + kernel.buffers[static_cast<size_t>(index)].name + "' of scope " + kernel.buffers[static_cast<size_t>(index)].scope + " is used in two launches");
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace tw
