#include "passes/plan_memory.h"

#include <algorithm>
#include <numeric>

namespace tw {
namespace {

constexpr int64_t kAlign = 64;

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

MemoryPlan plan_static(const std::vector<Lifetime>& buffers, const std::vector<int64_t>& sizes) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::pair(-sizes[a], a) < std::pair(-sizes[b], b); });
  std::vector<size_t> placed;
  std::vector<int64_t> at(buffers.size());
  int64_t peak = 0;
  for (size_t i : order) {
    // The gaps between the placed buffers that are alive with this one, from below.
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j : placed)
      if (overlap(buffers[i], buffers[j])) taken.emplace_back(at[j], at[j] + sizes[j]);
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (auto [begin, end] : taken) {
      if (offset + sizes[i] <= begin) break;
      offset = std::max(offset, end);
    }
    at[i] = offset;
    placed.push_back(i);
    plan.offsets[i] = Expr(offset);
    peak = std::max(peak, offset + sizes[i]);
  }
  plan.bytes = Expr(peak);
  return plan;
}

MemoryPlan plan_symbolic(const std::vector<Lifetime>& buffers, const std::vector<Expr>& sizes, const Ranges& symbols) {
  struct Slot { Expr bytes; std::vector<size_t> users; };
  std::vector<Slot> slots;
  std::vector<size_t> slot_of(buffers.size()), order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::pair(buffers[a].first, a) < std::pair(buffers[b].first, b); });
  for (size_t i : order) {
    size_t chosen = slots.size();
    for (size_t s = 0; s < slots.size() && chosen == slots.size(); ++s) {
      bool free = std::none_of(slots[s].users.begin(), slots[s].users.end(), [&](size_t u) { return overlap(buffers[u], buffers[i]); });
      if (!free) continue;
      if (can_prove(le(sizes[i], slots[s].bytes), symbols)) {
        chosen = s;
      } else if (can_prove(le(slots[s].bytes, sizes[i]), symbols)) {
        slots[s].bytes = sizes[i];
        chosen = s;
      }
    }
    if (chosen == slots.size()) slots.push_back({sizes[i], {}});
    slots[chosen].users.push_back(i);
    slot_of[i] = chosen;
  }
  MemoryPlan plan;
  std::vector<Expr> starts;
  for (const Slot& slot : slots) {
    starts.push_back(plan.bytes);
    plan.bytes = simplify(plan.bytes + slot.bytes, symbols);
  }
  for (size_t i = 0; i < buffers.size(); ++i) plan.offsets.push_back(starts[slot_of[i]]);
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& buffers, const Ranges& symbols) {
  std::vector<Expr> rounded;
  std::vector<int64_t> constant;
  for (const Lifetime& buffer : buffers) {
    Expr bytes = simplify(floor_div(buffer.bytes + Expr(kAlign - 1), Expr(kAlign)) * Expr(kAlign), symbols);
    rounded.push_back(bytes);
    if (auto known = as_const(bytes)) constant.push_back(*known);
  }
  return constant.size() == buffers.size() ? plan_static(buffers, constant) : plan_symbolic(buffers, rounded, symbols);
}

}  // namespace tw
