#include "ir/kernel/live_spans.h"

#include <algorithm>

#include "ir/kernel/guards.h"

namespace tw {
namespace {

struct Access {
  int64_t at = 0;
  std::vector<size_t> loops;     // numbers of the loops around it, from the outside in
  std::vector<Expr> conditions;  // conditions that all hold at the access
  bool sets = false;             // overwrites the element without reading it
};

class Spans {
 public:
  Spans(const Kernel& kernel, const std::string& scope) : kernel_(kernel), scope_(scope) {
    walk(kernel.body, {});
  }

  std::map<int32_t, LiveSpan> all() const {
    std::map<int32_t, LiveSpan> spans;
    for (const auto& [buffer, accesses] : accesses_) spans[buffer] = span_of(accesses);
    return spans;
  }

 private:
  void walk(const Stmt& s, std::vector<Expr> conditions) {
    const auto* store = as<stmt::Store>(s);
    const auto* guard = as<stmt::If>(s);
    const Expr condition = store ? store->where : guard ? guard->condition : Expr();
    for (const Expr& e : conjuncts(condition)) conditions.push_back(e);
    if (store) {
      note(*store, conditions);
      ++stores_;
      return;
    }
    const bool loop = is<stmt::Loop>(s);
    const size_t number = loops_.size();
    if (loop) {
      loops_.push_back({stores_, stores_});
      around_.push_back(number);
    }
    for (const Stmt& part : children(s)) walk(part, conditions);
    if (!loop) return;
    loops_[number].last = stores_ - 1;
    around_.pop_back();
  }

  void note(const stmt::Store& store, const std::vector<Expr>& conditions) {
    bool reads_own = store.combiner != Combiner::none;
    const auto read = [&](const Expr& e) {
      const auto* load = as<expr::Load>(e);
      if (!load) return;
      reads_own |= load->buffer == store.buffer;
      if (of_scope(load->buffer))
        accesses_[load->buffer.index].push_back({stores_, around_, conditions, false});
    };
    for (const Expr& e : {store.value, store.where, store.init})
      if (e.defined()) visit(e, read);
    for (const Expr& e : store.indices) visit(e, read);
    if (of_scope(store.buffer))
      accesses_[store.buffer.index].push_back({stores_, around_, conditions, !reads_own});
  }
  bool of_scope(BufferId id) const { return kernel_.buffer(id).scope == scope_; }

  // True: no access can read a value from before the first access.
  static bool begins(const std::vector<Access>& accesses) {
    const Access& first = accesses.front();
    return first.sets && std::ranges::all_of(first.conditions, [&](const Expr& condition) {
             return std::ranges::all_of(accesses, [&](const Access& a) {
               return std::ranges::any_of(
                   a.conditions, [&](const Expr& other) { return equal(other, condition); });
             });
           });
  }

  LiveSpan span_of(const std::vector<Access>& accesses) const {
    if (!begins(accesses)) return {0, stores_ - 1};
    size_t common = accesses.front().loops.size();
    for (const Access& a : accesses)
      common = std::min<size_t>(common, std::ranges::mismatch(accesses.front().loops, a.loops).in1 -
                                            accesses.front().loops.begin());
    LiveSpan span{accesses.front().at, accesses.front().at};
    for (const Access& a : accesses) {
      const LiveSpan here = a.loops.size() == common ? LiveSpan{a.at, a.at}
                                                     : loops_[a.loops[common]];
      span = {std::min(span.first, here.first), std::max(span.last, here.last)};
    }
    return span;
  }

  const Kernel& kernel_;
  const std::string& scope_;
  int64_t stores_ = 0;
  std::vector<LiveSpan> loops_;
  std::vector<size_t> around_;
  std::map<int32_t, std::vector<Access>> accesses_;
};

}  // namespace

std::map<int32_t, LiveSpan> live_spans(const Kernel& kernel, const std::string& scope) {
  return Spans(kernel, scope).all();
}

}  // namespace tw
