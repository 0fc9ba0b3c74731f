#include "passes/plan_memory.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

namespace tw {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kGrowth = 32;       // one part in so many may be added to the arena for the cache's sake

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// A stretch of the arena and the last call that uses it.
struct Stretch {
  int64_t begin = 0, end = 0;
  int last = 0;
};
struct StaticPlan {
  std::vector<int64_t> at;
  int64_t peak = 0;
};

// Largest first, each into the lowest gap between the buffers that are alive with it.
StaticPlan pack_by_size(const std::vector<Lifetime>& buffers, const std::vector<int64_t>& sizes) {
  StaticPlan plan{std::vector<int64_t>(buffers.size()), 0};
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::pair(-sizes[a], a) < std::pair(-sizes[b], b); });
  std::vector<size_t> placed;
  for (size_t i : order) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j : placed)
      if (overlap(buffers[i], buffers[j])) taken.emplace_back(plan.at[j], plan.at[j] + sizes[j]);
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (auto [begin, end] : taken) {
      if (offset + sizes[i] <= begin) break;
      offset = std::max(offset, end);
    }
    plan.at[i] = offset;
    placed.push_back(i);
    plan.peak = std::max(plan.peak, offset + sizes[i]);
  }
  return plan;
}

// The arena as it was used so far, in order of addresses, without gaps.
class Usage {
 public:
  explicit Usage(int64_t bytes) : stretches_{{0, bytes, -1}} {}

  // Where `size` bytes that no call from `now` on needs were used last on the whole; nullopt: nowhere.
  std::optional<int64_t> latest_free(int64_t size, int now) const {
    std::optional<int64_t> best;
    double most = -1;
    auto consider = [&](int64_t offset) {
      double late = lateness(offset, offset + size, now);
      if (late > most) most = late, best = offset;
    };
    for (const Stretch& s : stretches_) {
      if (s.begin + size <= stretches_.back().end) consider(s.begin);
      if (s.end >= size) consider(s.end - size);
    }
    return best;
  }

  void use(int64_t begin, int64_t end, int last) {
    std::vector<Stretch> next;
    for (const Stretch& s : stretches_) {
      if (s.begin < begin) next.push_back({s.begin, std::min(s.end, begin), s.last});
      if (s.begin <= begin && begin < s.end) next.push_back({begin, end, last});
      if (s.end > end) next.push_back({std::max(s.begin, end), s.end, s.last});
    }
    stretches_ = std::move(next);
  }

 private:
  double lateness(int64_t begin, int64_t end, int now) const {
    double sum = 0;
    for (const Stretch& s : stretches_) {
      if (s.end <= begin || s.begin >= end) continue;
      if (s.last >= now) return -1;
      sum += static_cast<double>(std::min(s.end, end) - std::max(s.begin, begin)) * (s.last + 1);
    }
    return sum;
  }

  std::vector<Stretch> stretches_;
};

// In the order of the calls, where the bytes were used last; nullopt: some buffer found no room below the limit.
std::optional<StaticPlan> pack_by_use(const std::vector<Lifetime>& buffers, const std::vector<int64_t>& sizes, int64_t limit) {
  StaticPlan plan{std::vector<int64_t>(buffers.size()), 0};
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::tuple(buffers[a].first, -sizes[a], a) < std::tuple(buffers[b].first, -sizes[b], b); });
  Usage usage(limit);
  for (size_t i : order) {
    if (sizes[i] == 0) continue;
    std::optional<int64_t> offset = usage.latest_free(sizes[i], buffers[i].first);
    if (!offset) return std::nullopt;
    plan.at[i] = *offset;
    plan.peak = std::max(plan.peak, *offset + sizes[i]);
    usage.use(*offset, *offset + sizes[i], buffers[i].last);
  }
  return plan;
}

MemoryPlan plan_static(const std::vector<Lifetime>& buffers, const std::vector<int64_t>& sizes) {
  StaticPlan chosen = pack_by_size(buffers, sizes);
  int64_t growth = chosen.peak / kGrowth / kAlign * kAlign;
  for (int64_t limit : {chosen.peak, chosen.peak + growth})
    if (auto by_use = pack_by_use(buffers, sizes, limit)) {
      chosen = *by_use;
      break;
    }
  MemoryPlan plan;
  for (int64_t offset : chosen.at) plan.offsets.push_back(Expr(offset));
  plan.bytes = Expr(chosen.peak);
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

double warm_share(const MemoryPlan& plan, const std::vector<Lifetime>& buffers, int64_t cache) {
  constexpr int64_t kPage = 4096;
  if (!as_const(plan.bytes)) return 0;
  std::vector<int> last_use(static_cast<size_t>(as_const(plan.bytes).value_or(0) / kPage + 1), -1);   // by page: a call
  int calls = 0;
  for (const Lifetime& b : buffers) calls = std::max(calls, b.last + 1);
  std::vector<int64_t> touched(static_cast<size_t>(calls) + 1);   // bytes of buffers that end or start before the call
  for (const Lifetime& b : buffers) {
    touched[static_cast<size_t>(b.first) + 1] += as_const(b.bytes).value_or(0);
    touched[static_cast<size_t>(b.last) + 1] += as_const(b.bytes).value_or(0);
  }
  std::partial_sum(touched.begin(), touched.end(), touched.begin());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::pair(buffers[a].first, a) < std::pair(buffers[b].first, b); });
  double warm = 0, all = 0;
  for (size_t i : order) {
    int64_t begin = as_const(plan.offsets[i]).value_or(0), end = begin + as_const(buffers[i].bytes).value_or(0);
    for (int64_t page = begin / kPage; page * kPage < end; ++page) {
      int& use = last_use[static_cast<size_t>(page)];
      ++all;
      warm += use >= 0 && touched[static_cast<size_t>(buffers[i].first)] - touched[static_cast<size_t>(use)] <= cache;
      use = std::max(use, buffers[i].last);
    }
  }
  return all > 0 ? warm / all : 1;
}

}  // namespace tw
