#include "backends/device/thread_form.h"

#include "ir/kernel/guards.h"

namespace tw {
namespace {

Stmt barrier() {
  StmtNode node{.kind = StmtKind::barrier};
  return make_stmt(std::move(node));
}

class Rewriter {
 public:
  Rewriter(const LaunchPlan& plan, const Target& target) : plan_(plan), target_(target) {}

  Expected<ThreadForm> run() {
    ThreadForm form;
    for (int d = 0; d < 3; ++d) {
      form.variables[thread_variable({true, d})] = {Expr(0), plan_.groups[static_cast<size_t>(d)] - Expr(1)};
      form.variables[thread_variable({false, d})] = {Expr(0), Expr(plan_.items[static_cast<size_t>(d)] - 1)};
    }
    form.body = meeting(plan_.body);
    if (!problem_.empty()) return make_error(DiagCode::unsupported, "{0}", problem_);
    return form;
  }

 private:
  // Where threads must meet, all of them walk the structure and conditions wait for the statements; elsewhere they are asked at once.
  Stmt meeting(const Stmt& s) {
    if (!synchronizes(s, target_)) return guarded(s);
    switch (s->kind) {
      case StmtKind::block: return sequence(s);
      case StmtKind::barrier: return barrier();
      case StmtKind::region: return meeting(s->body[0]);
      case StmtKind::loop: {
        if (s->loop_kind == LoopKind::bind) return bound(s);
        StmtNode loop = *s;
        if (loop.loop_kind == LoopKind::vector) loop.loop_kind = LoopKind::unroll;
        loop.body = {make_block({meeting(s->body[0]), barrier()})};
        return make_stmt(std::move(loop));
      }
      case StmtKind::if_then: {
        bool differs = false;
        for (int d = 0; d < 3; ++d) differs |= uses_var(s->condition, thread_variable({false, d}));
        if (differs) problem_ = "a barrier under a condition that differs between threads";
        return make_if(s->condition, meeting(s->body[0]));
      }
      default: return guarded(s);
    }
  }

  Stmt sequence(const Stmt& s) {
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) {
      const bool written = child->kind == StmtKind::barrier;
      if (!body.empty() && !written && body.back()->kind != StmtKind::barrier) body.push_back(barrier());
      body.push_back(meeting(child));
    }
    return make_block(std::move(body));
  }

  // What keeps all but one thread out, of the dimensions that no loop around or inside runs over.
  Expr absent(const Stmt& s) const {
    std::array<bool, 3> items = bound_items_, groups = bound_groups_;
    visit(s, [&](const Stmt& n) {
      if (n->kind != StmtKind::loop || n->loop_kind != LoopKind::bind) return;
      if (const auto place = axis_place(target_, n->axis)) (place->group ? groups : items)[static_cast<size_t>(place->dim)] = true;
    });
    Expr all;
    for (int d = 0; d < 3; ++d) {
      const auto i = static_cast<size_t>(d);
      if (!items[i] && plan_.items[i] > 1) all = logical_and(all, eq(var(thread_variable({false, d})), Expr(0)));
      if (!groups[i] && !is_const(plan_.groups[i], 1)) all = logical_and(all, eq(var(thread_variable({true, d})), Expr(0)));
    }
    return all;
  }

  Stmt guarded(const Stmt& s) {
    const std::vector<Expr> kept = std::exchange(waiting_, {});
    const Expr condition = logical_and(conjunction(kept), absent(s));
    const auto items = std::exchange(bound_items_, {true, true, true}), groups = std::exchange(bound_groups_, {true, true, true});
    const Stmt body = plain(s);
    bound_items_ = items;
    bound_groups_ = groups;
    waiting_ = kept;
    return condition.defined() ? make_if(condition, body) : body;
  }

  Stmt plain(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::block: {
        std::vector<Stmt> body;
        for (const Stmt& child : s->body) body.push_back(plain(child));
        return make_block(std::move(body));
      }
      case StmtKind::loop:
        if (s->loop_kind == LoopKind::bind) return bound(s);
        return with_body(*s, plain(s->body[0]));
      case StmtKind::if_then: return with_body(*s, plain(s->body[0]));
      case StmtKind::region: return plain(s->body[0]);
      case StmtKind::prefetch: return make_block({});   // a hint
      case StmtKind::store: return s;
      case StmtKind::roles:
      case StmtKind::signal:
      case StmtKind::wait:
      case StmtKind::barrier: problem_ = "a barrier, roles or tokens where threads cannot meet"; return s;
    }
    TW_UNREACHABLE("a statement");
  }

  Stmt bound(const Stmt& s) {
    const AxisPlace place = *axis_place(target_, s->axis);
    const auto dim = static_cast<size_t>(place.dim);
    const Expr me = var(thread_variable(place));
    const Expr all = place.group ? plan_.groups[dim] : Expr(plan_.items[dim]);
    const Stmt body = substitute(s->body[0], s->var, me);
    const bool meets = synchronizes(body, target_);
    bool& here = (place.group ? bound_groups_ : bound_items_)[dim];
    const bool before = std::exchange(here, true);
    const std::vector<Expr> kept = waiting_;
    if (!equal(all, s->extent)) waiting_.push_back(lt(me, s->extent));
    const Stmt result = meets ? meeting(body) : guarded(body);
    waiting_ = kept;
    here = before;
    return result;
  }

  const LaunchPlan& plan_;
  const Target& target_;
  std::vector<Expr> waiting_;   // conditions for the statements below
  std::array<bool, 3> bound_items_{}, bound_groups_{};
  std::string problem_;
};

}  // namespace

std::string thread_variable(const AxisPlace& place) { return (place.group ? "group." : "item.") + std::to_string(place.dim); }

Expected<ThreadForm> thread_form(const LaunchPlan& plan, const Target& target) { return Rewriter(plan, target).run(); }

}  // namespace tw
