#include "ir/kernel/shared_loop.h"

#include <algorithm>

#include "ir/simplify.h"
#include "ir/target.h"

namespace tw {
namespace {

constexpr int64_t kEnough = 64;  // iterations that divide evenly enough among threads
constexpr int64_t kMostParts = 1 << 16;

bool independent(const Kernel& kernel, const Stmt& body) {
  const std::vector<StoreRef> stores = stores_of(body);
  auto is_output = [&](BufferId id) { return kernel.buffer(id).role == BufferRole::output; };
  auto reads_back = [&](const StoreRef& store) {
    bool found = false;
    for (const Expr& e : {store->value, store->where, store->init})
      if (e.defined())
        visit(e, [&](const Expr& n) {
          const auto* load = as<expr::Load>(n);
          found |= load && is_output(load->buffer);
        });
    return found;
  };
  return std::all_of(stores.begin(), stores.end(), [&](const StoreRef& store) {
    const Buffer& buffer = kernel.buffer(store->buffer);
    if (reads_back(store)) return false;
    if (is_output(store->buffer)) return store->combiner == Combiner::none;
    return buffer.scope != "global";
  });
}
}  // namespace

const stmt::Loop* shared_loop(const Kernel& kernel, const stmt::Loop& parallel) {
  const auto extent = as_const(parallel.extent);
  const auto* inner = as<stmt::Loop>(parallel.body);
  if (!extent || *extent >= kEnough || !inner) return nullptr;
  if (inner->kind != LoopKind::serial || inner->role != AxisRole::spatial ||
      as_const(inner->extent).value_or(1) < 2)
    return nullptr;
  return independent(kernel, inner->body) ? inner : nullptr;
}

bool is_shared_out(const Kernel& kernel, const Stmt& s) {
  const auto* loop = as<stmt::Loop>(s);
  return loop && loop->kind == LoopKind::parallel &&
         (as_const(loop->extent) != 1 || shared_loop(kernel, *loop));
}

// A rough estimate on purpose: six operations for each lane and nanosecond. Bytes count little, 512
// a nanosecond. Work that only moves data is worth dividing only when it is large, because half of
// the data then comes out of another core's cache.
Expr most_parts(const Work& work, const Target& target, int64_t nanoseconds) {
  if (nanoseconds <= 0) return Expr(kMostParts);
  const Expr ns = floor_div(work.flops, Expr(6 * target.lanes(4))) +
                  floor_div(work.weight_bytes + work.tensor_bytes, Expr(512));
  return simplify(max(min(floor_div(ns, Expr(nanoseconds)), Expr(kMostParts)), Expr(1)));
}

Expr most_parts_below(Expr most, const std::vector<const stmt::Loop*>& around) {
  if (is_const(most, 1)) return most;  // holds for any extents
  for (const stmt::Loop* loop : around) most = floor_div(most, loop->extent);
  return simplify(max(most, Expr(1)));
}

SharedWork shared_work(const Kernel& scheduled, const Work& work, const Target& target,
                       int64_t nanoseconds) {
  const Operations operations = count_operations(scheduled);
  const Expr most = most_parts(work, target, nanoseconds);
  // The workspace has one slice for each core of the target.
  const bool sliced = std::ranges::any_of(
      scheduled.buffers, [](const Buffer& buffer) { return buffer.scope == "thread"; });
  SharedWork shared{operations.all, {}};
  for (const ParallelOperations& loop : operations.parallel) {
    Expr iterations = loop.loop->extent, entries(1);
    if (const stmt::Loop* inner = shared_loop(scheduled, *loop.loop))
      iterations = iterations * inner->extent;
    for (const stmt::Loop* outer : loop.around) entries = entries * outer->extent;
    Expr parts = most_parts_below(most, loop.around);
    if (sliced) parts = min(parts, Expr(target.cores));
    shared.loops.push_back(
        {simplify(iterations), simplify(parts), simplify(entries), loop.operations});
  }
  return shared;
}

}  // namespace tw
