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
    const auto* variable = as<expr::Var>(node);
    found |= is<expr::Load>(node) || (variable && vars.contains(variable->name));
  });
  return found;
}

// The conditions that every store in s shares and that no loop in s changes
std::vector<Expr> common(const Stmt& s);

std::vector<Expr> common_of(const stmt::Sequence& sequence) {
  std::vector<Expr> all;
  bool first = true;
  for (const Stmt& child : sequence.body) {
    if (is<stmt::Prefetch>(child)) continue;  // a hint needs no guard
    std::vector<Expr> here = common(child);
    if (first) all = std::move(here);
    else std::erase_if(all, [&](const Expr& e) { return !contains(here, e); });
    first = false;
  }
  return all;
}
std::vector<Expr> common_of(const stmt::Loop& loop) {
  std::vector<Expr> inner = common(loop.body);
  std::erase_if(inner, [&](const Expr& e) { return depends_on(e, {loop.var}); });
  return inner;
}
std::vector<Expr> common_of(const stmt::If& guard) {
  std::vector<Expr> all = conjuncts(guard.condition);
  std::erase_if(all, [](const Expr& e) { return depends_on(e, {}); });
  for (const Expr& e : common(guard.body))
    if (!contains(all, e)) all.push_back(e);
  return all;
}
std::vector<Expr> common_of(const stmt::Store& store) {
  std::vector<Expr> all = store.init.defined() ? std::vector<Expr>() : conjuncts(store.where);
  std::erase_if(all, [](const Expr& e) { return depends_on(e, {}); });
  return all;
}
std::vector<Expr> common_of(const stmt::Block& block) { return common(block.body); }
std::vector<Expr> common_of(const stmt::Roles&) { return {}; }
std::vector<Expr> common_of(const stmt::Signal&) { return {}; }
std::vector<Expr> common_of(const stmt::Wait&) { return {}; }
std::vector<Expr> common_of(const stmt::Barrier&) { return {}; }
std::vector<Expr> common_of(const stmt::Prefetch&) { return {}; }

std::vector<Expr> common(const Stmt& s) {
  return match(s, [](const auto& kind) { return common_of(kind); });
}

// The statement without the conditions in `known`, which hold around it
Stmt strip(const Stmt& s, const std::vector<Expr>& known) {
  return rewrite(s, [&](const Stmt& inner) -> Stmt {
    const auto* guard = as<stmt::If>(inner);
    const auto* guarded = as<stmt::Store>(inner);
    if (!guard && (!guarded || !guarded->where.defined())) return nullptr;
    std::vector<Expr> left = conjuncts(guard ? guard->condition : guarded->where);
    const size_t before = left.size();
    std::erase_if(left, [&](const Expr& e) { return contains(known, e); });
    if (left.size() == before) return nullptr;
    if (guard) return left.empty() ? guard->body : make_if(conjunction(left), guard->body);
    stmt::Store store = *guarded;
    store.where = conjunction(left);
    return make_store(std::move(store));
  });
}

Stmt hoist(const Stmt& s) {
  if (children(s).empty() || is<stmt::Roles>(s)) return s;
  if (const auto* block = as<stmt::Block>(s)) return with_body(s, hoist(block->body));
  if (const auto* whole = as<stmt::Loop>(s)) {
    const std::vector<Expr> conditions = whole->kind == LoopKind::parallel ? std::vector<Expr>()
                                                                           : common(s);
    const Stmt inner = conditions.empty() ? s : strip(s, conditions);
    const Stmt loop = with_body(inner, hoist(get<stmt::Loop>(inner).body));
    return conditions.empty() ? loop : make_if(conjunction(conditions), loop);
  }
  if (const auto* guard = as<stmt::If>(s)) {
    std::vector<Expr> known = conjuncts(guard->condition);
    std::erase_if(known, [](const Expr& e) { return depends_on(e, {}); });
    return make_if(guard->condition, hoist(strip(guard->body, known)));
  }
  std::vector<Stmt> body;
  for (const Stmt& child : children(s)) body.push_back(hoist(child));
  return make_sequence(std::move(body));
}

}  // namespace

std::vector<Expr> conjuncts(const Expr& condition) {
  if (!condition.defined()) return {};
  const auto* both = as_binary(condition, BinaryOp::logical_and);
  if (!both) return {condition};
  std::vector<Expr> all = conjuncts(both->a);
  for (Expr& e : conjuncts(both->b)) all.push_back(std::move(e));
  return all;
}

Expr conjunction(const std::vector<Expr>& conditions) {
  Expr all;
  for (const Expr& e : conditions) all = logical_and(all, e);
  return all;
}

Stmt hoist_guards(const Stmt& body) { return hoist(body); }

}  // namespace tw
