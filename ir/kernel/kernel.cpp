// Statement makers and walks.
#include "ir/kernel/kernel.h"

#include <algorithm>

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

namespace {
bool is_empty(const Stmt& s) { return s->kind == StmtKind::sequence && s->body.empty(); }
}  // namespace

Stmt make_stmt(StmtNode node) { return std::make_shared<const StmtNode>(std::move(node)); }

Stmt with_body(const StmtNode& s, Stmt body) {
  StmtNode node = s;
  node.body = {std::move(body)};
  return make_stmt(std::move(node));
}

Stmt make_sequence(std::vector<Stmt> body) {
  std::vector<Stmt> flat;
  for (Stmt& s : body) {
    TW_CHECK(s != nullptr, "a block of nothing");
    if (s->kind == StmtKind::sequence) flat.insert(flat.end(), s->body.begin(), s->body.end());
    else flat.push_back(std::move(s));
  }
  if (flat.size() == 1) return flat[0];
  return make_stmt({.kind = StmtKind::sequence, .body = std::move(flat)});
}

Stmt make_loop(std::string var, Expr extent, Stmt body, LoopKind kind, AxisRole role) {
  TW_CHECK(!var.empty() && extent.defined() && body,
           "loop '{0}' needs a variable, an extent and a body", var);
  return make_stmt({.kind = StmtKind::loop,
                    .body = {std::move(body)},
                    .var = std::move(var),
                    .extent = std::move(extent),
                    .loop_kind = kind,
                    .role = role});
}

Stmt make_if(Expr condition, Stmt body) {
  TW_CHECK(condition.defined() && condition.type() == DType::boolean && body,
           "if needs a bool condition and a body");
  return make_stmt(
      {.kind = StmtKind::if_then, .body = {std::move(body)}, .condition = std::move(condition)});
}

Stmt make_store(StmtNode store) {
  TW_CHECK(store.buffer.valid() && store.value.defined(), "store '{0}' needs a buffer and a value",
           store.label);
  store.kind = StmtKind::store;
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
  for (const Stmt& child : s->body) visit(child, fn);
}

Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn) {
  if (!s) return s;
  Stmt rebuilt = s;
  std::vector<Stmt> body;
  for (size_t i = 0; i < s->body.size(); ++i) {
    Stmt child = rewrite(s->body[i], fn);
    if (body.empty() && child == s->body[i]) continue;
    if (body.empty()) body = s->body;
    body[i] = std::move(child);
  }
  if (!body.empty()) {
    if (s->kind == StmtKind::sequence) {
      rebuilt = make_sequence(std::move(body));
      if (rebuilt->kind != StmtKind::sequence) return rebuilt;  // fn has seen the one that is left
    } else if (std::all_of(body.begin(), body.end(), is_empty)) {
      return body[0];  // a loop or if around nothing is nothing
    } else {
      StmtNode node = *s;
      node.body = std::move(body);
      rebuilt = make_stmt(std::move(node));
    }
  }
  Stmt replaced = fn(rebuilt);
  return replaced ? replaced : rebuilt;
}

Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn) {
  return rewrite(s, [&](const Stmt& stmt) -> Stmt {
    if (stmt->kind == StmtKind::sequence) return nullptr;
    StmtNode node = *stmt;
    bool changed = false;
    auto apply = [&](Expr& e) {
      if (!e.defined()) return;
      Expr mapped = fn(e);
      if (!mapped.defined() || mapped.get() == e.get()) return;
      e = std::move(mapped);
      changed = true;
    };
    apply(node.extent);
    apply(node.condition);
    for (Expr& index : node.indices) apply(index);
    apply(node.value);
    apply(node.where);
    apply(node.init);
    return changed ? make_stmt(std::move(node)) : nullptr;
  });
}

Stmt substitute(const Stmt& s, std::string_view var, const Expr& value) {
  return rewrite_exprs(s, [&](const Expr& e) { return substitute(e, var, value); });
}

namespace {
bool find_path(const Stmt& s, std::string_view label, std::vector<Stmt>& path) {
  if (s->kind == StmtKind::store) return s->label == label;
  bool keeps = s->kind != StmtKind::sequence;
  if (keeps) path.push_back(s);
  for (const Stmt& child : s->body)
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

Stmt find_loop(const Stmt& root, std::string_view var) {
  if (!root) return nullptr;
  if (root->kind == StmtKind::loop && root->var == var) return root;
  for (const Stmt& child : root->body)
    if (Stmt found = find_loop(child, var)) return found;
  return nullptr;
}

std::vector<Stmt> stores_of(const Stmt& root) {
  std::vector<Stmt> stores;
  visit(root, [&](const Stmt& s) {
    if (s->kind == StmtKind::store) stores.push_back(s);
  });
  return stores;
}

}  // namespace tw
