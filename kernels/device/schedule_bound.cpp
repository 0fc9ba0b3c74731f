// Targets with axes, one rule for all kernels. The points of a nest, in tiles of a vector (and a
// few rows where it sums), are numbered and dealt out to blocks of threads; sums that only a nest
// reads are made in its threads, in registers. In a scan the threads of one block run each nest.
// What does not fit the rule stays as it is: one thread runs it.
#include <algorithm>
#include <set>

#include "ir/simplify.h"
#include "kernels/default_schedule.h"
#include "kernels/families.h"

namespace tw {
namespace {

constexpr int64_t kThreads = 64;   // of a block
constexpr int64_t kLongRow = 128;  // elements: a block for it pays
// In all: fewer do not fill a device, more rows a thread would not pay
constexpr int64_t kFewThreads = 256;
constexpr int64_t kMostSums = 64;      // of one thread and stage
constexpr int64_t kTypicalSymbol = 8;  // where work is compared

int64_t typical(const Expr& e) {
  return eval_int(e, [](std::string_view) { return kTypicalSymbol; });
}

bool reads(const Stmt& root, BufferId buffer) {
  bool found = false;
  const auto note = [&](const Expr& e) {
    if (e.defined())
      visit(e, [&](const Expr& n) { found |= n->kind == ExprKind::load && n->buffer == buffer; });
  };
  visit(root, [&](const Stmt& s) {
    for (const Expr& e : {s->extent, s->condition, s->value, s->where, s->init}) note(e);
    for (const Expr& e : s->indices) note(e);
  });
  return found;
}

Stmt store_of(const ScheduleBuilder& s, const std::string& label) {
  for (const Stmt& store : stores_of(s.kernel().body))
    if (store->label == label) return store;
  TW_UNREACHABLE("no stage '{0}'", label);
}

class BoundSpace {
 public:
  BoundSpace(const Kernel& kernel, const Target& target, Choices* choices)
      : s_(kernel, target, choices), target_(target) {
    int64_t most = 0;
    for (const DeviceAxis& axis : target.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread" && thread_.empty())
        thread_ = axis.name, threads_ = axis.max > 0 ? std::min(axis.max, kThreads) : kThreads,
        most = axis.max;
    }
    std::vector<int64_t> others;
    for (const int64_t threads : {16, 32, 64, 128, 256})
      if (threads <= target.max_group && (most <= 0 || threads <= most)) others.push_back(threads);
    threads_ = s_.choose("threads", threads_, others);
  }

  Expected<Schedule> run() {
    if (ScheduleBuilder rows = s_; rows_in_blocks(rows)) return rows.finish();
    std::vector<std::string> labels;
    for (const Stmt& store : stores_of(s_.kernel().body)) labels.push_back(store->label);
    // Readers first: what they need may move into their threads
    for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
      if (done_.contains(*label)) continue;
      if (!attempt(*label, true)) attempt(*label, false);
    }
    return s_.finish();
  }

 private:
  struct Nest {
    std::vector<std::string> spatial, reduce;
    bool in_scan = false, perfect = true;
    Stmt store;
  };

  Nest nest_of(const ScheduleBuilder& s, const std::string& label) const {
    Nest nest;
    nest.store = store_of(s, label);
    for (const Stmt& p : path_to(s.kernel().body, label)) {
      if (p->kind == StmtKind::if_then) nest.perfect = false;
      if (p->kind != StmtKind::loop) continue;
      if (p->role == AxisRole::scan) nest.in_scan = true;
      else if (p->role == AxisRole::reduce) nest.reduce.push_back(p->var);
      else if (nest.reduce.empty()) nest.spatial.push_back(p->var);
      else nest.perfect = false;
      nest.perfect &= p->loop_kind == LoopKind::serial;
    }
    return nest;
  }

  // A kernel that makes something of whole rows (softmax, normalisation): a block a row, all stages
  // of it in the block's own memory, the threads side by side along the row. False where it is no
  // such kernel, rows are short or do not fit.
  bool rows_in_blocks(ScheduleBuilder& s) const {
    const auto shared = std::ranges::find(target_.scopes, "block", &MemoryScope::level);
    if (shared == target_.scopes.end() || block_.empty() || thread_.empty() || !s.has_stage("y"))
      return false;
    std::vector<std::string> rows = s.loops_of("y"), parts, threads;
    if (rows.size() < 2 || !s.reduce_loops_of("y").empty() ||
        s.extent(rows.back()).value_or(0) < kLongRow)
      return false;
    rows.pop_back();
    for (const Stmt& store : stores_of(s.kernel().body)) {
      if (uses_products(s, store->label, true) || nest_of(s, store->label).in_scan) return false;
      if (store->label.ends_with("_part")) parts.push_back(store->label);
    }
    if (parts.empty()) return false;
    for (const std::string& part : parts) s.cache_write(part, part + "_sum", "stack");
    const std::vector<Stmt> stores = stores_of(s.kernel().body);
    int64_t bytes = 0;
    for (auto store = stores.rbegin(); store != stores.rend() && s.sound(); ++store) {
      const std::string& label = (*store)->label;
      if (label == "y" || label.ends_with("_part_sum")) continue;
      Expr points = 1;
      for (const std::string& loop : s.loops_of(label))
        points = points * find_loop(s.kernel().body, loop)->extent;
      s.compute_at(label, rows.back());
      if (!s.sound()) return false;
      Expr again = 1;
      for (const std::string& loop : s.loops_of(label))
        again = again * find_loop(s.kernel().body, loop)->extent;
      const std::string buffer = s.kernel().buffer((*store)->buffer).name;  // the kernel changes
      s.set_scope(buffer, shared->name);
      bytes += s.bytes_of(buffer).value_or(INT32_MAX);
      if (typical(again) > typical(points)) return false;
      threads.push_back(spread(s, label, rows));
    }
    threads.push_back(spread(s, "y", rows));
    if (bytes > target_.local_bytes) return false;
    for (const std::string& loop : threads) s.bind(loop, thread_);
    s.bind(s.fuse(rows, "rows"), block_);
    ScheduleBuilder probe = s;
    Expected<Schedule> finished = probe.finish();
    if (!finished) llvm::consumeError(finished.takeError());
    return bool(finished);
  }

  // The row's points of a stage in the turns of the threads, each with its sums: the loop over the
  // threads. "": no points, one thread's.
  std::string spread(ScheduleBuilder& s, const std::string& label,
                     const std::vector<std::string>& rows) const {
    std::vector<std::string> inner = s.spatial_loops_of(label);
    std::erase_if(inner, [&](const std::string& loop) {
      return std::ranges::find(rows, loop) != rows.end();
    });
    if (inner.empty()) return "";
    std::string points = s.fuse(inner, label + "_all");
    if (s.extent(points).value_or(threads_ + 1) > threads_) {
      s.split(points, threads_, Tail::guard, label + "_turn", label + "_thread");
      s.reorder({label + "_thread", label + "_turn"});
      points = label + "_thread";
    }
    if (const std::string sums = label + "_sum"; s.has_stage(sums)) {
      s.compute_at(sums, points);
      const std::vector<std::string> reduce = s.reduce_loops_of(sums);
      if (!reduce.empty()) s.decompose(sums, reduce.front());
    }
    return points;
  }

  // Stages in the same nest count as done with it.
  bool attempt(const std::string& label, bool tiled) {
    ScheduleBuilder s = s_;
    std::set<std::string> done = {label};
    if (!bind_nest(s, label, tiled, done) || !s.sound()) return false;
    ScheduleBuilder probe = s;
    Expected<Schedule> finished = probe.finish();
    if (!finished) {
      llvm::consumeError(finished.takeError());
      return false;
    }
    s_ = std::move(s);
    done_.merge(done);
    return true;
  }

  bool bind_nest(ScheduleBuilder& s, const std::string& label, bool tiled,
                 std::set<std::string>& done) {
    Nest nest = nest_of(s, label);
    if (nest.spatial.empty() || !nest.perfect) return false;
    if (const Stmt outer = find_loop(s.kernel().body, nest.spatial.front()))
      for (const Stmt& store : stores_of(outer)) done.insert(store->label);
    const bool several = done.size() > 1;
    std::string sums;
    if (!nest.reduce.empty()) {  // the sums themselves: in registers, then stored
      if (several) return false;
      sums = label + "_sum";
      s.cache_write(label, sums, "stack");
      if (!s.sound()) return false;
      nest = nest_of(s, label);
    }
    const std::vector<std::string> inner = tile(
        s, nest, label, tiled, uses_products(s, sums.empty() ? label : sums, !sums.empty()));
    std::vector<std::string> outer = s.loops_of(label);
    std::erase_if(outer, [&](const std::string& loop) {
      return std::ranges::find(inner, loop) != inner.end() ||
             find_loop(s.kernel().body, loop)->role == AxisRole::scan;
    });
    for (const std::string& loop : outer)
      count_ = &loop == &outer.front() ? find_loop(s.kernel().body, loop)->extent
                                       : count_ * find_loop(s.kernel().body, loop)->extent;
    if (outer.empty()) return false;
    const std::string all = s.fuse(outer, label + "_all");
    const int64_t threads = std::min(threads_, s.extent(all).value_or(threads_));
    s.split(all, threads, Tail::guard, label + "_block", label + "_thread");
    if (nest.in_scan) s.reorder({label + "_thread", label + "_block"});
    const std::string at = nest.in_scan ? label + "_block" : label + "_thread";
    if (!s.sound()) return false;
    if (!sums.empty() && !move_sums(s, sums, at)) return false;
    absorb(s, at, done);
    for (size_t i = 0; i + 1 < inner.size(); ++i) s.unroll(inner[i]);
    if (!inner.empty()) s.vectorize(inner.back());
    s.bind(label + "_thread", thread_);
    if (!nest.in_scan) s.bind(label + "_block", block_);
    return true;
  }

  // Sums of products (squares are none), made by the stage or read by it: neighbouring rows and
  // columns share operands.
  static bool uses_products(const ScheduleBuilder& s, const std::string& label, bool own) {
    const Stmt reader = store_of(s, label);
    return std::ranges::any_of(stores_of(s.kernel().body), [&](const Stmt& store) {
      const bool product = store->combiner == Combiner::add &&
                           store->value->kind == ExprKind::binary &&
                           store->value->binary == BinaryOp::mul &&
                           !equal(store->value->args[0], store->value->args[1]);
      return product && (own ? store->label == label : reads(reader, store->buffer));
    });
  }

  // Cuts a vector off the last loop, and a few rows off the one before where sums are made; the
  // inner loops, the lanes last.
  std::vector<std::string> tile(ScheduleBuilder& s, const Nest& nest, const std::string& label,
                                bool tiled, bool products) {
    const DType t = s.kernel().buffer(nest.store->buffer).dtype;
    const std::string last = nest.spatial.back();
    const int64_t lanes = target_.lanes(dtype_bytes(t));
    const std::optional<int64_t> n = s.extent(last);
    const Expr index = nest.store->indices.empty() ? Expr(0) : nest.store->indices.back();
    const bool side_by_side = index->kind == ExprKind::var && index->name == last;
    if (!tiled || !is_float(t) || lanes < 2 || !n || *n % lanes != 0 || !side_by_side) return {};
    std::vector<std::string> inner = {last};
    if (*n > lanes) {
      inner = {label + "_lane"};
      s.split(last, lanes, Tail::guard, label + "_vec", label + "_lane");
    }
    if (!products || nest.spatial.size() < 2) return inner;
    const std::string row = nest.spatial[nest.spatial.size() - 2];
    Expr points = 1;
    for (const std::string& loop : nest.spatial)
      points = points *
               (loop == last ? Expr(*n / lanes) : find_loop(s.kernel().body, loop)->extent);
    const int64_t rows = s.choose("rows_" + label, rows_of(s.extent(row)), {1, 2, 4, 8});
    if (rows < 2 || typical(points) < rows * kFewThreads) return inner;
    s.split(row, rows, Tail::guard, label + "_tile", label + "_row");
    inner.insert(inner.begin(), label + "_row");
    std::vector<std::string> order;
    for (const std::string& loop : s.loops_of(label))
      if (std::ranges::find(inner, loop) == inner.end() &&
          find_loop(s.kernel().body, loop)->role == AxisRole::spatial)
        order.push_back(loop);
    order.insert(order.end(), inner.begin(), inner.end());
    s.reorder(order);
    return inner;
  }

  static int64_t rows_of(std::optional<int64_t> extent) {
    for (const int64_t rows : {4, 7, 6, 5, 3, 2})
      if (extent && *extent % rows == 0) return rows;
    return 1;
  }

  // Sums that this loop alone reads, few for each of its iterations and not made many times over.
  void absorb(ScheduleBuilder& s, const std::string& at, std::set<std::string>& done) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Stmt& store : stores_of(s.kernel().body)) {
        const Stmt loop = find_loop(s.kernel().body, at);
        const std::vector<Stmt> stores = stores_of(loop);
        const bool inside = std::ranges::any_of(
            stores, [&](const Stmt& other) { return other->label == store->label; });
        if (inside || store->combiner == Combiner::none || !reads(loop, store->buffer)) continue;
        ScheduleBuilder trial = s;
        if (!move_sums(trial, store->label, at)) continue;
        s = std::move(trial);
        done.insert(store->label);
        moved = true;
        break;
      }
    }
  }

  bool move_sums(ScheduleBuilder& s, const std::string& label, const std::string& at) {
    const Nest before = nest_of(s, label);
    Expr points = 1;
    for (const std::string& loop : before.spatial)
      points = points * find_loop(s.kernel().body, loop)->extent;
    s.compute_at(label, at);
    if (!s.sound()) return false;
    Expr here = 1;
    const Buffer& buffer = s.kernel().buffer(store_of(s, label)->buffer);
    for (const Expr& extent : buffer.shape) here = here * extent;
    const std::optional<int64_t> each = as_const(simplify(here));
    if (!each || *each > kMostSums || *each * typical(count_) > 2 * typical(points)) return false;
    const Nest nest = nest_of(s, label);
    std::vector<std::string> spatial;  // of the stage itself, behind the loop
    bool behind = false;
    for (const std::string& loop : s.loops_of(label)) {
      if (behind && std::ranges::find(nest.reduce, loop) == nest.reduce.end())
        spatial.push_back(loop);
      behind |= loop == at;
    }
    if (nest.reduce.empty()) return true;
    if (spatial.empty()) {
      s.decompose(label, nest.reduce.front());
      return s.sound();
    }
    const std::string lane = spatial.back();
    spatial.pop_back();
    ScheduleBuilder trial = s;
    trial.accumulate(label, nest.reduce, spatial, lane);
    if (trial.sound()) s = std::move(trial);
    return true;
  }

  ScheduleBuilder s_;
  const Target& target_;
  std::string block_, thread_;
  int64_t threads_ = kThreads;
  Expr count_ = 1;  // iterations of the nest's outer loops
  std::set<std::string> done_;
};

}  // namespace

Expected<Schedule> bound_schedule(const Kernel& kernel, const Target& target, Choices* choices) {
  return BoundSpace(kernel, target, choices).run();
}

}  // namespace tw
