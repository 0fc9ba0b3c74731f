#include "backends/llvm/shared_loop.h"

#include <algorithm>

namespace tw::codegen {
namespace {

constexpr int64_t kEnough = 64;  // iterations that split evenly enough

bool independent(const Kernel& kernel, const Stmt& body) {
  const std::vector<Stmt> stores = stores_of(body);
  auto is_output = [&](BufferId id) { return kernel.buffer(id).role == BufferRole::output; };
  auto reads_back = [&](const Stmt& store) {
    bool found = false;
    for (const Expr& e : {store->value, store->where, store->init})
      if (e.defined())
        visit(e,
              [&](const Expr& n) { found |= n->kind == ExprKind::load && is_output(n->buffer); });
    return found;
  };
  return std::all_of(stores.begin(), stores.end(), [&](const Stmt& store) {
    const Buffer& buffer = kernel.buffer(store->buffer);
    if (reads_back(store)) return false;
    if (is_output(store->buffer)) return store->combiner == Combiner::none;
    return buffer.scope != "global";
  });
}
}  // namespace

const StmtNode* shared_loop(const Kernel& kernel, const Stmt& parallel) {
  auto extent = as_const(parallel->extent);
  const Stmt& inner = parallel->body[0];
  if (!extent || *extent >= kEnough || inner->kind != StmtKind::loop) return nullptr;
  if (inner->loop_kind != LoopKind::serial || inner->role != AxisRole::spatial ||
      as_const(inner->extent).value_or(1) < 2)
    return nullptr;
  return independent(kernel, inner->body[0]) ? inner.get() : nullptr;
}

}  // namespace tw::codegen
