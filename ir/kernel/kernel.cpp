// Statement makers and walks.
#include "ir/kernel/kernel.h"

#include <algorithm>

#include "ir/kernel/accesses.h"

namespace tw {

const char* loop_kind_name(LoopKind k) {
  switch (k) {
    case LoopKind::serial: return "serial";
    case LoopKind::parallel: return "parallel";
    case LoopKind::vector: return "vector";
    case LoopKind::unroll: return "unroll";
    case LoopKind::vthread: return "vthread";
    case LoopKind::bind: return "bind";
  }
  TW_UNREACHABLE("bad loop kind");
}

bool is_concurrent(LoopKind k) { return k == LoopKind::vthread || k == LoopKind::bind; }

const char* axis_role_name(AxisRole r) {
  switch (r) {
    case AxisRole::spatial: return "spatial";
    case AxisRole::reduce: return "reduce";
    case AxisRole::scan: return "scan";
  }
  TW_UNREACHABLE("bad axis role");
}

bool is_empty(const Stmt& s) {
  const auto* sequence = as<stmt::Sequence>(s);
  return sequence && sequence->body.empty();
}

Stmt make_stmt(StmtNode node) { return std::make_shared<const StmtNode>(std::move(node)); }

std::span<const Stmt> children(const StmtNode& s) {
  return match(
      s, [](const stmt::Sequence& sequence) { return std::span<const Stmt>(sequence.body); },
      [](const stmt::Roles& roles) { return std::span<const Stmt>(roles.parts); },
      [](const auto& other) {
        if constexpr (requires { other.body; }) return std::span<const Stmt>(&other.body, 1);
        else return std::span<const Stmt>();
      });
}

Stmt with_children(const Stmt& s, std::vector<Stmt> children) {
  StmtNode node = *s;
  std::visit(
      [&](auto& kind) {
        using T = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<T, stmt::Sequence>) kind.body = std::move(children);
        else if constexpr (std::is_same_v<T, stmt::Roles>) kind.parts = std::move(children);
        else if constexpr (requires { kind.body; }) kind.body = std::move(children.at(0));
      },
      node.is);
  return make_stmt(std::move(node));
}

Stmt with_body(const Stmt& s, Stmt body) { return with_children(s, {std::move(body)}); }

Stmt body_of(const Stmt& s) {
  return is<stmt::Loop, stmt::If, stmt::Block>(s) ? children(s)[0] : nullptr;
}

Stmt make_sequence(std::vector<Stmt> body) {
  std::vector<Stmt> flat;
  for (Stmt& s : body) {
    TW_CHECK(s != nullptr, "a block of nothing");
    if (const auto* inner = as<stmt::Sequence>(s))
      flat.insert(flat.end(), inner->body.begin(), inner->body.end());
    else flat.push_back(std::move(s));
  }
  if (flat.size() == 1) return flat[0];
  return make_stmt(stmt::Sequence{std::move(flat)});
}

Stmt make_loop(std::string var, Expr extent, Stmt body, LoopKind kind, AxisRole role) {
  TW_CHECK(!var.empty() && extent.defined() && body,
           "loop '{0}' needs a variable, an extent and a body", var);
  return make_stmt(stmt::Loop{std::move(var), std::move(extent), std::move(body), kind, role});
}

Stmt make_if(Expr condition, Stmt body) {
  TW_CHECK(condition.defined() && condition.type() == DType::boolean && body,
           "if needs a bool condition and a body");
  return make_stmt(stmt::If{std::move(condition), std::move(body)});
}

Stmt make_store(stmt::Store store) {
  TW_CHECK(store.buffer.valid() && store.value.defined(), "store '{0}' needs a buffer and a value",
           store.label);
  return make_stmt(std::move(store));
}

std::optional<BufferId> Kernel::find_buffer(std::string_view name) const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].name == name) return BufferId{static_cast<int32_t>(i)};
  return std::nullopt;
}

const TokenQueue* Kernel::find_queue(std::string_view name) const {
  for (const TokenQueue& queue : queues)
    if (queue.name == name) return &queue;
  return nullptr;
}

void visit(const Stmt& s, const std::function<void(const Stmt&)>& fn) {
  if (!s) return;
  fn(s);
  for (const Stmt& child : children(s)) visit(child, fn);
}

Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn) {
  if (!s) return s;
  Stmt rebuilt = s;
  std::vector<Stmt> changed;
  const std::span<const Stmt> before = children(s);
  for (size_t i = 0; i < before.size(); ++i) {
    Stmt child = rewrite(before[i], fn);
    if (changed.empty() && child == before[i]) continue;
    if (changed.empty()) changed.assign(before.begin(), before.end());
    changed[i] = std::move(child);
  }
  if (!changed.empty()) {
    if (is<stmt::Sequence>(s)) {
      rebuilt = make_sequence(std::move(changed));
      if (!is<stmt::Sequence>(rebuilt)) return rebuilt;  // fn has seen the one remaining statement
    } else if (std::ranges::all_of(changed, is_empty)) {
      return changed[0];  // a loop or if without a body is dropped
    } else {
      rebuilt = with_children(s, std::move(changed));
    }
  }
  Stmt replaced = fn(rebuilt);
  return replaced ? replaced : rebuilt;
}

namespace {

// Calls fn with each expression that the statement itself holds, except undefined ones.
template <class Node, class F>
void for_each_expr(Node& s, F&& fn) {
  const auto one = [&](auto& e) {
    if (e.defined()) fn(e);
  };
  std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.extent; }) one(kind.extent);
        if constexpr (requires { kind.condition; }) one(kind.condition);
        if constexpr (requires { kind.index; }) one(kind.index);
        if constexpr (requires { kind.indices; })
          for (auto& index : kind.indices) one(index);
        if constexpr (requires { kind.where; }) one(kind.where);
        if constexpr (requires { kind.value; }) one(kind.value);
        if constexpr (requires { kind.init; }) one(kind.init);
      },
      s.is);
}

}  // namespace

void visit_exprs(const StmtNode& s, const std::function<void(const Expr&)>& fn) {
  for_each_expr(s, fn);
}

Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn) {
  return rewrite(s, [&](const Stmt& stmt) -> Stmt {
    if (is<stmt::Sequence, stmt::Block, stmt::Roles, stmt::Barrier>(stmt)) return nullptr;
    StmtNode node = *stmt;
    bool changed = false;
    for_each_expr(node, [&](Expr& e) {
      Expr mapped = fn(e);
      if (!mapped.defined() || mapped.get() == e.get()) return;
      e = std::move(mapped);
      changed = true;
    });
    return changed ? make_stmt(std::move(node)) : nullptr;
  });
}

Stmt substitute(const Stmt& s, std::string_view var, const Expr& value) {
  return rewrite_exprs(s, [&](const Expr& e) { return substitute(e, var, value); });
}

Stmt rewrite_accesses(const Stmt& root,
                      const std::function<std::optional<BufferAccess>(
                          BufferId buffer, const std::vector<Expr>& indices)>& fn) {
  const Stmt loads = rewrite_exprs(root, [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      const auto* read = as<expr::Load>(e);
      auto access = read ? fn(read->buffer, read->indices) : std::nullopt;
      return access ? load(access->buffer, e->type, std::move(access->indices)) : Expr();
    });
  });
  const auto mapped = [&](auto statement) -> Stmt {
    auto access = fn(statement.buffer, statement.indices);
    if (!access) return nullptr;
    statement.buffer = access->buffer;
    statement.indices = std::move(access->indices);
    return make_stmt(std::move(statement));
  };
  return rewrite(loads, [&](const Stmt& s) -> Stmt {
    if (const auto* store = as<stmt::Store>(s)) return mapped(*store);
    if (const auto* prefetch = as<stmt::Prefetch>(s)) return mapped(*prefetch);
    return nullptr;
  });
}

Stmt with_buffers(const Stmt& s, const std::function<BufferId(BufferId)>& number) {
  return rewrite_accesses(s, [&](BufferId buffer, const std::vector<Expr>& indices) {
    return std::optional<BufferAccess>({number(buffer), indices});
  });
}

namespace {
bool find_path(const Stmt& s, std::string_view label, std::vector<Stmt>& path) {
  if (const auto* store = as<stmt::Store>(s)) return store->label == label;
  const bool keeps = !is<stmt::Sequence>(s);
  if (keeps) path.push_back(s);
  for (const Stmt& child : children(s))
    if (find_path(child, label, path)) return true;
  if (keeps) path.pop_back();
  return false;
}
}  // namespace

std::vector<Stmt> path_to(const Stmt& root, std::string_view label) {
  std::vector<Stmt> path;
  if (root) find_path(root, label, path);
  return path;
}

LoopRef find_loop(const Stmt& root, std::string_view var) {
  if (!root) return {};
  if (const auto* loop = as<stmt::Loop>(root); loop && loop->var == var) return LoopRef(root);
  for (const Stmt& child : children(root))
    if (LoopRef found = find_loop(child, var)) return found;
  return {};
}

std::vector<StoreRef> stores_of(const Stmt& root) {
  std::vector<StoreRef> stores;
  visit(root, [&](const Stmt& s) {
    if (is<stmt::Store>(s)) stores.emplace_back(s);
  });
  return stores;
}

}  // namespace tw
