#include "backends/device/thread_form.h"

#include <algorithm>

#include "backends/device/together.h"
#include "ir/kernel/guards.h"

namespace tw::device {
namespace {

Stmt barrier() { return make_stmt(stmt::Barrier{}); }

// Buffers that a statement shares between threads, and if it writes them
using Shared = std::map<int32_t, bool>;

bool conflict(const Shared& before, const Shared& after) {
  return std::ranges::any_of(before, [&](const auto& use) {
    const auto other = after.find(use.first);
    return other != after.end() && (use.second || other->second);
  });
}

void join(Shared& all, const Shared& more) {
  for (const auto& [buffer, written] : more) all[buffer] |= written;
}

class Rewriter {
 public:
  Rewriter(const Kernel& kernel, const LaunchPlan& plan, const Target& target)
      : kernel_(kernel), plan_(plan), target_(target) {}

  Expected<ThreadForm> run() {
    ThreadForm form{kernel_, {}};
    for (int d = 0; d < 3; ++d) {
      form.variables[thread_variable({true, d})] = {Expr(0),
                                                    plan_.groups[static_cast<size_t>(d)] - Expr(1)};
      form.variables[thread_variable({false, d})] = {Expr(0),
                                                     Expr(plan_.items[static_cast<size_t>(d)] - 1)};
    }
    TW_ASSIGN(const Stmt body, with_group_counts(plan_.body));
    visit(body, [&](const Stmt& s) {
      if (const auto* store = as<stmt::Store>(s); store && store->async)
        copied_[store->buffer.index] = true;
    });
    variables_ = form.variables;
    visit(body, [&](const Stmt& s) {
      if (const auto* loop = as<stmt::Loop>(s))
        variables_[loop->var] = {Expr(0), loop->extent - Expr(1)};
    });
    form.kernel.body = without_thread_dims(meeting(body), form.kernel);
    if (!problem_.empty()) return make_error(DiagCode::unsupported, "{0}", problem_);
    return form;
  }

 private:
  // If threads must meet, all of them walk the structure, and only the statements are under
  // conditions. Elsewhere conditions are tested at once.
  Stmt meeting(const Stmt& s) {
    if (!synchronizes(s, target_)) return guarded(s);
    return match(
        s, [&](const stmt::Sequence& sequence) { return meeting_sequence(sequence); },
        [&](const stmt::Barrier&) { return barrier(); },
        [&](const stmt::Block& block) { return meeting(block.body); },
        [&](const stmt::Loop& loop) { return meeting_loop(loop); },
        [&](const stmt::If& guard) {
          bool differs = false;
          for (int d = 0; d < 3; ++d)
            differs |= uses_var(guard.condition, thread_variable({false, d}));
          if (differs) problem_ = "a barrier under a condition that differs between threads";
          return conditional(guard.condition, guard.body);
        },
        [&](const stmt::Signal&) { return s; }, [&](const stmt::Wait&) { return s; },
        [&](const auto&) { return guarded(s); });
  }

  Stmt meeting_loop(stmt::Loop loop) {
    if (loop.kind == LoopKind::bind) return bound(loop);
    if (loop.kind == LoopKind::vector) loop.kind = LoopKind::unroll;
    loop.body = conflict(shared(loop.body, true), shared(loop.body, false))
                    ? make_sequence({meeting(loop.body), barrier()})
                    : meeting(loop.body);
    return make_stmt(std::move(loop));
  }

  // A group of copies ends even when the condition makes no copies, so that every wait knows the
  // number of groups behind it.
  Stmt conditional(const Expr& condition, const Stmt& s) {
    if (is<stmt::Signal>(s)) return s;
    const auto* sequence = as<stmt::Sequence>(s);
    if (!sequence) return make_if(condition, meeting(s));
    std::vector<Stmt> body, part;
    const auto close = [&] {
      if (!part.empty())
        body.push_back(make_if(condition, meeting(make_sequence(std::exchange(part, {})))));
    };
    for (const Stmt& child : sequence->body) {
      if (is<stmt::Signal>(child)) close(), body.push_back(child);
      else part.push_back(child);
    }
    close();
    return make_sequence(std::move(body));
  }

  Stmt meeting_sequence(const stmt::Sequence& sequence) {
    std::vector<Stmt> body;
    Shared since;  // uses since the last barrier
    for (const Stmt& child : sequence.body) {
      const Shared here = shared(child, false);
      if (conflict(since, here)) body.push_back(barrier());
      if (conflict(since, here) || is<stmt::Barrier>(child)) since.clear();
      body.push_back(meeting(child));
      join(since, shared(child, true));
    }
    return make_sequence(std::move(body));
  }

  // The shared buffers of `s`. With `past`: those that other threads may have to wait for
  // afterwards. An asynchronous copy counts at its own thread's wait instead.
  Shared shared(const Stmt& s, bool past) const {
    Shared all;
    const auto note = [&](BufferId id, bool written) {
      if (plan_.spaces.at(id.index) != Space::own) all[id.index] |= written;
    };
    visit(s, [&](const Stmt& n) {
      if (const auto* store = as<stmt::Store>(n); store && !(past && store->async))
        note(store->buffer, true);
      if (is<stmt::Wait>(n) && past) join(all, copied_);
      visit_exprs(*n, [&](const Expr& e) {
        visit(e, [&](const Expr& x) {
          if (const auto* load = as<expr::Load>(x)) note(load->buffer, false);
        });
      });
    });
    return all;
  }

  Stmt without_thread_dims(const Stmt& body, Kernel& kernel) const {
    const auto drop = [&](BufferId id, std::vector<Expr>& list) {
      const auto dims = plan_.thread_dims.find(id.index);
      if (dims == plan_.thread_dims.end()) return;
      for (auto d = dims->second.rbegin(); d != dims->second.rend(); ++d)
        list.erase(list.begin() + static_cast<ptrdiff_t>(*d));
    };
    for (const auto& [index, dims] : plan_.thread_dims)
      drop(BufferId{index}, kernel.buffers[static_cast<size_t>(index)].shape);
    const Stmt loads = rewrite_exprs(body, [&](const Expr& whole) {
      return rewrite(whole, [&](const Expr& e) {
        const auto* read = as<expr::Load>(e);
        if (!read) return Expr();
        std::vector<Expr> indices = read->indices;
        drop(read->buffer, indices);
        return indices.size() == read->indices.size()
                   ? Expr()
                   : load(read->buffer, e->type, std::move(indices));
      });
    });
    return rewrite(loads, [&](const Stmt& s) -> Stmt {
      if (!is<stmt::Store>(s)) return nullptr;
      stmt::Store store = get<stmt::Store>(s);
      drop(store.buffer, store.indices);
      return make_store(std::move(store));
    });
  }

  // A condition that keeps out all but one thread, in the dimensions that no loop around or inside
  // covers
  Expr absent(const Stmt& s) const {
    std::array<bool, 3> items = bound_items_, groups = bound_groups_;
    visit(s, [&](const Stmt& n) {
      if (threads_together(*n, target_) > 1) items[0] = true;
      const auto* loop = as<stmt::Loop>(n);
      if (!loop || loop->kind != LoopKind::bind) return;
      if (const auto place = axis_place(target_, loop->axis))
        (place->group ? groups : items)[static_cast<size_t>(place->dim)] = true;
    });
    Expr all;
    for (int d = 0; d < 3; ++d) {
      const auto i = static_cast<size_t>(d);
      if (!items[i] && plan_.items[i] > 1)
        all = logical_and(all, eq(var(thread_variable({false, d})), Expr(0)));
      if (!groups[i] && !is_const(plan_.groups[i], 1))
        all = logical_and(all, eq(var(thread_variable({true, d})), Expr(0)));
    }
    return all;
  }

  Stmt guarded(const Stmt& s) {
    const std::vector<Expr> kept = std::exchange(waiting_, {});
    const Expr condition = logical_and(conjunction(kept), absent(s));
    const auto items = std::exchange(bound_items_, {true, true, true}),
               groups = std::exchange(bound_groups_, {true, true, true});
    const Stmt body = plain(s);
    bound_items_ = items;
    bound_groups_ = groups;
    waiting_ = kept;
    return condition.defined() ? make_if(condition, body) : body;
  }

  Stmt plain(const Stmt& s) {
    const auto cannot_meet = [&] {
      problem_ = "a barrier, roles or tokens where threads cannot meet";
      return s;
    };
    return match(
        s,
        [&](const stmt::Sequence& sequence) {
          std::vector<Stmt> body;
          for (const Stmt& child : sequence.body) body.push_back(plain(child));
          return make_sequence(std::move(body));
        },
        [&](const stmt::Loop& loop) {
          return loop.kind == LoopKind::bind ? bound(loop) : with_body(s, plain(loop.body));
        },
        [&](const stmt::If& guard) { return with_body(s, plain(guard.body)); },
        [&](const stmt::Block& block) {
          return threads_together(*s, target_) > 1 ? instruction(block) : plain(block.body);
        },
        [&](const stmt::Prefetch&) { return make_sequence({}); },  // only a hint, so it is dropped
        [&](const stmt::Store&) { return s; }, [&](const stmt::Roles&) { return cannot_meet(); },
        [&](const stmt::Signal&) { return cannot_meet(); },
        [&](const stmt::Wait&) { return cannot_meet(); },
        [&](const stmt::Barrier&) { return cannot_meet(); });
  }

  Stmt instruction(const stmt::Block& block) {
    auto parts = parts_of(kernel_, block, target_, variables_);
    if (!parts) return problem_ = error_text(parts.takeError()), make_sequence({});
    if (!is_const(parts->threads->extent, plan_.items[0]))
      problem_ = "block '" + block.name + "' is done by " + to_string(parts->threads->extent) +
                 " threads together, of " + std::to_string(plan_.items[0]) + " along their axis";
    for (auto& [name, operand] : parts->operands)
      if (operand.spread) operand.at = parts->indices(name, var(thread_variable({false, 0})));
    return part_of_operands(parts->semantics, block, parts->operands);
  }

  Stmt bound(const stmt::Loop& loop) {
    const AxisPlace place = *axis_place(target_, loop.axis);
    const auto dim = static_cast<size_t>(place.dim);
    const Expr me = var(thread_variable(place));
    const Expr all = place.group ? plan_.groups[dim] : Expr(plan_.items[dim]);
    const Stmt body = substitute(loop.body, loop.var, me);
    const bool meets = synchronizes(body, target_);
    bool& here = (place.group ? bound_groups_ : bound_items_)[dim];
    const bool before = std::exchange(here, true);
    const std::vector<Expr> kept = waiting_;
    if (!equal(all, loop.extent)) waiting_.push_back(lt(me, loop.extent));
    const Stmt result = meets ? meeting(body) : guarded(body);
    waiting_ = kept;
    here = before;
    return result;
  }

  const Kernel& kernel_;
  const LaunchPlan& plan_;
  const Target& target_;
  Shared copied_;  // buffers that asynchronous copies fill
  Ranges variables_;
  std::vector<Expr> waiting_;  // conditions that the statements below must test
  std::array<bool, 3> bound_items_{}, bound_groups_{};
  std::string problem_;
};

}  // namespace

std::string thread_variable(const AxisPlace& place) {
  return (place.group ? "group." : "item.") + std::to_string(place.dim);
}

Expected<ThreadForm> thread_form(const Kernel& kernel, const LaunchPlan& plan,
                                 const Target& target) {
  return Rewriter(kernel, plan, target).run();
}

}  // namespace tw::device
