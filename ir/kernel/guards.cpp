#include "ir/kernel/guards.h"

#include <algorithm>
#include <set>

namespace tw {
namespace {

bool contains(const std::vector<Expr>& list, const Expr& e) {
  return std::ranges::any_of(list, [&](const Expr& other) { return equal(other, e); });
}

bool depends_on(const Expr& e, const std::set<std::string>& vars) {
  bool found = false;
  visit(e, [&](const Expr& node) {
    found |= node->kind == ExprKind::load ||
             (node->kind == ExprKind::var && vars.contains(node->name));
  });
  return found;
}

// What every store inside asks for, of conditions that the loops inside do not change.
std::vector<Expr> common(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::sequence: {
      std::vector<Expr> all;
      bool first = true;
      for (const Stmt& child : s->body) {
        if (child->kind == StmtKind::prefetch) continue;  // a hint
        std::vector<Expr> here = common(child);
        if (first) all = std::move(here);
        else std::erase_if(all, [&](const Expr& e) { return !contains(here, e); });
        first = false;
      }
      return all;
    }
    case StmtKind::loop: {
      std::vector<Expr> inner = common(s->body[0]);
      std::erase_if(inner, [&](const Expr& e) { return depends_on(e, {s->var}); });
      return inner;
    }
    case StmtKind::if_then: {
      std::vector<Expr> all = conjuncts(s->condition);
      std::erase_if(all, [](const Expr& e) { return depends_on(e, {}); });
      for (const Expr& e : common(s->body[0]))
        if (!contains(all, e)) all.push_back(e);
      return all;
    }
    case StmtKind::store: {
      std::vector<Expr> all = s->init.defined() ? std::vector<Expr>() : conjuncts(s->where);
      std::erase_if(all, [](const Expr& e) { return depends_on(e, {}); });
      return all;
    }
    case StmtKind::block: return common(s->body[0]);
    case StmtKind::roles:
    case StmtKind::signal:
    case StmtKind::wait:
    case StmtKind::barrier:
    case StmtKind::prefetch: return {};
  }
  TW_UNREACHABLE("bad statement kind");
}

// The statement where `known` holds.
Stmt strip(const Stmt& s, const std::vector<Expr>& known) {
  return rewrite(s, [&](const Stmt& inner) -> Stmt {
    const bool is_if = inner->kind == StmtKind::if_then;
    if (!is_if && (inner->kind != StmtKind::store || !inner->where.defined())) return nullptr;
    std::vector<Expr> left = conjuncts(is_if ? inner->condition : inner->where);
    const size_t before = left.size();
    std::erase_if(left, [&](const Expr& e) { return contains(known, e); });
    if (left.size() == before) return nullptr;
    if (is_if) return left.empty() ? inner->body[0] : make_if(conjunction(left), inner->body[0]);
    StmtNode store = *inner;
    store.where = conjunction(left);
    return make_store(std::move(store));
  });
}

Stmt hoist(const Stmt& s) {
  if (s->body.empty() || s->kind == StmtKind::roles) return s;
  if (s->kind == StmtKind::block) return with_body(*s, hoist(s->body[0]));
  if (s->kind == StmtKind::loop) {
    const std::vector<Expr> conditions = s->loop_kind == LoopKind::parallel ? std::vector<Expr>()
                                                                            : common(s);
    const Stmt inner = conditions.empty() ? s : strip(s, conditions);
    const Stmt loop = with_body(*inner, hoist(inner->body[0]));
    return conditions.empty() ? loop : make_if(conjunction(conditions), loop);
  }
  if (s->kind == StmtKind::if_then) {
    std::vector<Expr> known = conjuncts(s->condition);
    std::erase_if(known, [](const Expr& e) { return depends_on(e, {}); });
    return make_if(s->condition, hoist(strip(s->body[0], known)));
  }
  std::vector<Stmt> body;
  for (const Stmt& child : s->body) body.push_back(hoist(child));
  return make_sequence(std::move(body));
}

}  // namespace

std::vector<Expr> conjuncts(const Expr& condition) {
  if (!condition.defined()) return {};
  if (condition->kind != ExprKind::binary || condition->binary != BinaryOp::logical_and)
    return {condition};
  std::vector<Expr> all = conjuncts(condition->args[0]);
  for (Expr& e : conjuncts(condition->args[1])) all.push_back(std::move(e));
  return all;
}

Expr conjunction(const std::vector<Expr>& conditions) {
  Expr all;
  for (const Expr& e : conditions) all = logical_and(all, e);
  return all;
}

Stmt hoist_guards(const Stmt& body) { return hoist(body); }

}  // namespace tw
