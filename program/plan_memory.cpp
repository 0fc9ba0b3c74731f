#include "program/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace tw {
namespace {

constexpr int64_t kAlign = 64;
// The arena may grow by one part in kGrowth if buffers then find warm bytes.
constexpr int64_t kGrowth = 32;

// A stretch of the arena and the last call that uses it.
struct Stretch {
  int64_t begin = 0, end = 0;
  int last = 0;
};
struct StaticPlan {
  std::vector<int64_t> at;
  int64_t peak = 0;
};

int calls_of(const std::vector<Lifetime>& buffers) {
  int calls = 0;
  for (const Lifetime& b : buffers) calls = std::max(calls, b.last + 1);
  return calls;
}

// Disjoint stretches of the arena in the order of addresses. Adjacent ones are merged.
class Taken {
 public:
  void add(int64_t begin, int64_t end) {
    auto at = ends_.upper_bound(begin);
    if (at != ends_.begin() && std::prev(at)->second >= begin)
      at = std::prev(at), begin = at->first;
    while (at != ends_.end() && at->first <= end)
      end = std::max(end, at->second), at = ends_.erase(at);
    ends_.emplace(begin, end);
  }
  void append_to(std::vector<std::pair<int64_t, int64_t>>& list) const {
    list.insert(list.end(), ends_.begin(), ends_.end());
  }

 private:
  std::map<int64_t, int64_t> ends_;  // begin of a stretch -> its end
};

// The stretches that are taken by time: a segment tree over the calls. A lifetime is cut into the
// largest nodes that it fills.
class TakenByTime {
 public:
  explicit TakenByTime(int calls) {
    while (leaves_ < static_cast<size_t>(calls)) leaves_ *= 2;
    whole_.resize(2 * leaves_);
    some_.resize(2 * leaves_);
  }

  void occupy(const Lifetime& time, int64_t begin, int64_t end) {
    for (size_t node : pieces(time)) {
      whole_[node].add(begin, end);
      for (; node > 0; node /= 2) some_[node].add(begin, end);
    }
  }

  // The taken stretches in the order of their begins; they may overlap.
  std::vector<std::pair<int64_t, int64_t>> during(const Lifetime& time) const {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t node : pieces(time)) {
      some_[node].append_to(taken);
      while (node /= 2) whole_[node].append_to(taken);
    }
    std::sort(taken.begin(), taken.end());
    return taken;
  }

 private:
  std::vector<size_t> pieces(const Lifetime& time) const {
    std::vector<size_t> nodes;
    size_t first = leaves_ + static_cast<size_t>(time.first),
           end = leaves_ + static_cast<size_t>(time.last) + 1;
    for (; first < end; first /= 2, end /= 2) {
      if (first % 2) nodes.push_back(first++);
      if (end % 2) nodes.push_back(--end);
    }
    return nodes;
  }

  size_t leaves_ = 1;
  // By node: the stretches that are taken during all of its calls, and during any of them
  std::vector<Taken> whole_, some_;
};

// Places the largest buffer first, each into the lowest gap between the buffers alive with it.
StaticPlan pack_by_size(const std::vector<Lifetime>& buffers, const std::vector<int64_t>& sizes) {
  StaticPlan plan{std::vector<int64_t>(buffers.size()), 0};
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(-sizes[a], a) < std::pair(-sizes[b], b); });
  TakenByTime placed(calls_of(buffers));
  for (size_t i : order) {
    if (sizes[i] == 0) continue;
    int64_t offset = 0;
    for (auto [begin, end] : placed.during(buffers[i])) {
      if (offset + sizes[i] <= begin) break;
      offset = std::max(offset, end);
    }
    plan.at[i] = offset;
    placed.occupy(buffers[i], offset, offset + sizes[i]);
    plan.peak = std::max(plan.peak, offset + sizes[i]);
  }
  return plan;
}

// The uses of the arena so far: stretches in the order of addresses, without gaps.
class Usage {
 public:
  explicit Usage(int64_t bytes) : stretches_{{0, bytes, -1}} {}

  // The offset of `size` bytes that no call from `now` on needs and that were used last, on
  // average. nullopt if no such bytes exist.
  std::optional<int64_t> latest_free(int64_t size, int now) const {
    std::vector<Sums> sums(1);  // sums before each stretch
    for (const Stretch& s : stretches_) sums.push_back(sums.back() + of(s, s.end, now));
    std::optional<int64_t> best;
    double most = -1;
    auto consider = [&](int64_t offset, const Sums& before, const Sums& behind) {
      if (behind.needed > before.needed || behind.late - before.late <= most) return;
      most = behind.late - before.late;
      best = offset;
    };
    const auto until = [&](int64_t address, size_t stretch) {
      return sums[stretch] + of(stretches_[stretch], address, now);
    };
    // A window that ends with stretch i begins in stretch `first`; one that begins with stretch i
    // ends in stretch `last`.
    size_t first = 0, last = 0;
    for (size_t i = 0; i < stretches_.size(); ++i) {
      const Stretch& s = stretches_[i];
      if (s.begin + size <= stretches_.back().end) {
        while (stretches_[last].end < s.begin + size) ++last;
        consider(s.begin, sums[i], until(s.begin + size, last));
      }
      if (s.end < size) continue;
      while (stretches_[first].end <= s.end - size && first < i) ++first;
      consider(s.end - size, until(s.end - size, first), sums[i + 1]);
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
  // Sums over the arena up to some address: bytes times the call of their last use, and bytes that
  // are still needed.
  struct Sums {
    double late = 0;
    int64_t needed = 0;
    Sums operator+(const Sums& o) const { return {late + o.late, needed + o.needed}; }
  };
  static Sums of(const Stretch& s, int64_t end, int now) {
    const int64_t bytes = end - s.begin;
    return s.last >= now ? Sums{0, bytes} : Sums{static_cast<double>(bytes) * (s.last + 1), 0};
  }

  std::vector<Stretch> stretches_;
};

// Places buffers in the order of the calls, each where bytes were used last. nullopt if a buffer
// finds no room below the limit.
std::optional<StaticPlan> pack_by_use(const std::vector<Lifetime>& buffers,
                                      const std::vector<int64_t>& sizes, int64_t limit) {
  StaticPlan plan{std::vector<int64_t>(buffers.size()), 0};
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(buffers[a].first, -sizes[a], a) < std::tuple(buffers[b].first, -sizes[b], b);
  });
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

MemoryPlan plan_symbolic(const std::vector<Lifetime>& buffers, const std::vector<Expr>& sizes,
                         const Ranges& symbols) {
  struct Slot {
    Expr bytes;
    int last;
  };  // `last`: the last call that uses the slot
  std::vector<Slot> slots;
  std::vector<size_t> slot_of(buffers.size()), order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(buffers[a].first, a) < std::pair(buffers[b].first, b);
  });
  for (size_t i : order) {
    size_t chosen = slots.size();
    for (size_t s = 0; s < slots.size() && chosen == slots.size(); ++s) {
      if (slots[s].last >= buffers[i].first) continue;
      if (can_prove(le(sizes[i], slots[s].bytes), symbols)) {
        chosen = s;
      } else if (can_prove(le(slots[s].bytes, sizes[i]), symbols)) {
        slots[s].bytes = sizes[i];
        chosen = s;
      }
    }
    if (chosen == slots.size()) slots.push_back({sizes[i], 0});
    slots[chosen].last = buffers[i].last;
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
    Expr bytes = simplify(floor_div(buffer.bytes + Expr(kAlign - 1), Expr(kAlign)) * Expr(kAlign),
                          symbols);
    rounded.push_back(bytes);
    if (auto known = as_const(bytes)) constant.push_back(*known);
  }
  return constant.size() == buffers.size() ? plan_static(buffers, constant)
                                           : plan_symbolic(buffers, rounded, symbols);
}

double warm_share(const MemoryPlan& plan, const std::vector<Lifetime>& buffers, int64_t cache) {
  constexpr int64_t kPage = 4096;
  if (!as_const(plan.bytes)) return 0;
  std::map<int64_t, int> last_use = {{0, -1}};  // first page of a stretch -> its last call
  const auto split = [&](int64_t page) {
    const auto at = std::prev(last_use.upper_bound(page));
    return at->first == page ? at : last_use.emplace_hint(std::next(at), page, at->second);
  };
  const int calls = calls_of(buffers);
  // By call: the bytes of buffers that begin or end in earlier calls
  std::vector<int64_t> touched(static_cast<size_t>(calls) + 1);
  for (const Lifetime& b : buffers) {
    touched[static_cast<size_t>(b.first) + 1] += as_const(b.bytes).value_or(0);
    touched[static_cast<size_t>(b.last) + 1] += as_const(b.bytes).value_or(0);
  }
  std::partial_sum(touched.begin(), touched.end(), touched.begin());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(buffers[a].first, a) < std::pair(buffers[b].first, b);
  });
  double warm = 0, all = 0;
  for (size_t i : order) {
    int64_t begin = as_const(plan.offsets[i]).value_or(0),
            end = begin + as_const(buffers[i].bytes).value_or(0);
    if (begin == end) continue;
    const auto behind = split((end + kPage - 1) / kPage);
    for (auto at = split(begin / kPage); at != behind;) {
      const auto pages = static_cast<double>(std::next(at)->first - at->first);
      int& use = at->second;
      all += pages;
      if (use >= 0 &&
          touched[static_cast<size_t>(buffers[i].first)] - touched[static_cast<size_t>(use)] <=
              cache)
        warm += pages;
      use = std::max(use, buffers[i].last);
      at = at->first > begin / kPage && std::prev(at)->second == use ? last_use.erase(at)
                                                                     : std::next(at);
    }
  }
  return all > 0 ? warm / all : 1;
}

}  // namespace tw
