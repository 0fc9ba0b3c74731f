// Schedules kernels for targets with axes by one rule. The points of a nest are cut into tiles of a
// vector, and of a few rows if it sums. The tiles are numbered and dealt out to blocks of threads.
// Sums that only this nest reads are made in its threads, in registers. In a scan, the threads of
// one block run each nest. A nest that does not fit the rule stays as it is, and one thread runs
// it.
#include <algorithm>
#include <map>
#include <set>

#include "ir/simplify.h"
#include "kernels/device/device.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

constexpr int64_t kThreads = 64;  // threads of a block
constexpr int64_t kLongRow = 32;  // elements that make a block for one row worthwhile
// Fewest threads in all. Fewer do not fill a device, so a thread then gets no more rows.
constexpr int64_t kFewThreads = 256;
constexpr int64_t kLongSum = 256;  // length from which threads may add parts of a sum
// From kUsuallySplit terms on they do by default. A part has at least kLeastTerms, and all parts
// take at most kManyThreads threads.
constexpr int64_t kUsuallySplit = 1024, kLeastTerms = 32, kManyThreads = 4096;
constexpr int64_t kMostSums = 64;      // limit of one thread in one stage
constexpr int64_t kTypicalSymbol = 8;  // assumed where work is compared

int64_t typical(const Expr& e) {
  return eval_int(e, [](std::string_view) { return kTypicalSymbol; });
}

bool reads(const Stmt& root, BufferId buffer) {
  bool found = false;
  const auto note = [&](const Expr& e) {
    visit(e, [&](const Expr& n) {
      const auto* load = as<expr::Load>(n);
      found |= load && load->buffer == buffer;
    });
  };
  visit(root, [&](const Stmt& s) { visit_exprs(*s, note); });
  return found;
}

Expr extent_of(const ScheduleBuilder& s, const Loop& loop) {
  return find_loop(s.kernel().body, loop.name())->extent;
}

bool contains(const Loops& loops, const Loop& loop) {
  return std::ranges::find(loops, loop) != loops.end();
}

// Labels of finished stages
using Done = std::set<std::string>;
using Sums = std::map<std::string, Stage>;  // stages of sums, by the label of their reader

class BoundSpace {
 public:
  BoundSpace(const Kernel& kernel, const ReduceStages* reduce, const Target& target,
             Choices* choices)
      : s_(kernel, target, choices), reduce_(reduce), target_(target) {
    int64_t most = 0;
    for (const DeviceAxis& axis : target.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread" && thread_.empty())
        thread_ = axis.name, threads_ = axis.max > 0 ? std::min(axis.max, kThreads) : kThreads,
        most = axis.max;
    }
    std::vector<int64_t> others;
    for (const int64_t threads : {4, 8, 16, 32, 48, 64, 96, 128, 192, 256})
      if (threads <= target.max_group && (most <= 0 || threads <= most)) others.push_back(threads);
    threads_ = s_.choose("threads", threads_, others);
  }

  Expected<Schedule> run() {
    if (ScheduleBuilder rows = s_; rows_in_blocks(rows)) return rows.finish();
    for (const Stage& stage : s_.stages()) split_sum(stage);
    const Stages stages = s_.stages();
    // Readers come first: the stages that they need may move into their threads.
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      if (done_.contains(stage->label())) continue;
      if (attempt(*stage, true)) continue;
      // A point whose tile does not fit is illegal, so that no two points give the same kernel.
      if (!misfit_.empty()) s_.fail(misfit_);
      attempt(*stage, false);
    }
    return s_.finish();
  }

 private:
  struct Nest {
    Loops spatial, reduce;
    bool in_scan = false, perfect = true;
    StoreRef store;
  };

  Nest nest_of(const ScheduleBuilder& s, const Stage& stage) const {
    Nest nest;
    nest.store = s.store_of(stage);
    for (const Stmt& p : path_to(s.kernel().body, stage.label())) {
      if (is<stmt::If>(p)) nest.perfect = false;
      const auto* loop = as<stmt::Loop>(p);
      if (!loop) continue;
      if (loop->role == AxisRole::scan) nest.in_scan = true;
      else if (loop->role == AxisRole::reduce) nest.reduce.push_back(s.loop_of(loop->var));
      else if (nest.reduce.empty()) nest.spatial.push_back(s.loop_of(loop->var));
      else nest.perfect = false;
      nest.perfect &= loop->kind == LoopKind::serial;
    }
    return nest;
  }

  static Expr points_of(const ScheduleBuilder& s, const Loops& loops) {
    Expr points = 1;
    for (const Loop& loop : loops) points = points * extent_of(s, loop);
    return points;
  }

  // Handles a kernel that works on whole rows, such as softmax or normalisation. A block computes a
  // row, with all its stages in the block's own memory and threads along the row. False: the kernel
  // is of another kind, or its rows are short or too large.
  bool rows_in_blocks(ScheduleBuilder& s) const {
    const auto shared = std::ranges::find(target_.scopes, "block", &MemoryScope::level);
    if (shared == target_.scopes.end() || block_.empty() || thread_.empty() || !reduce_)
      return false;
    Loops rows = s.loops_of(reduce_->y), threads;
    if (rows.size() < 2 || !s.reduce_loops_of(reduce_->y).empty() ||
        s.extent(rows.back()).value_or(0) < kLongRow || !reduce_->has_parts())
      return false;
    rows.pop_back();
    for (const Stage& stage : s.stages())
      if (uses_products(s, stage, true) || nest_of(s, stage).in_scan) return false;
    Sums sums;  // partial results, in the threads' registers
    for (const Stage& stage : s.stages())
      if (reduce_->is_part(stage))
        sums[stage.label()] = s.cache_write(stage, stage.label() + "_sum", "stack");
    const Stages stages = s.stages();
    int64_t bytes = 0;
    for (auto stage = stages.rbegin(); stage != stages.rend() && s.sound(); ++stage) {
      const bool in_registers = std::ranges::any_of(
          sums, [&](const auto& sum) { return sum.second == *stage; });
      if (*stage == reduce_->y || in_registers) continue;
      const Expr points = points_of(s, s.loops_of(*stage));
      s.compute_at(*stage, rows.back());
      if (!s.sound()) return false;
      const Expr again = points_of(s, s.loops_of(*stage));
      s.set_scope(*stage, shared->name);
      bytes += s.bytes_of(stage->buffer()).value_or(INT32_MAX);
      if (typical(again) > typical(points)) return false;
      threads.push_back(spread(s, *stage, rows, sums));
    }
    threads.push_back(spread(s, reduce_->y, rows, sums));
    if (bytes > target_.local_bytes) return false;
    for (const Loop& loop : threads) s.bind(loop, thread_);
    s.bind(s.fuse(rows, "rows"), block_);
    return finishes(s);
  }

  static bool finishes(ScheduleBuilder probe) {
    Expected<Schedule> finished = probe.finish();
    if (!finished) llvm::consumeError(finished.takeError());
    return bool(finished);
  }

  // Deals the points of a stage in a row out to the threads, each with its sums. Returns the loop
  // over threads; none: the row has one point, computed by one thread.
  Loop spread(ScheduleBuilder& s, const Stage& stage, const Loops& rows, const Sums& all) const {
    const std::string& label = stage.label();
    Loops inner = s.spatial_loops_of(stage);
    std::erase_if(inner, [&](const Loop& loop) { return contains(rows, loop); });
    if (inner.empty()) return {};
    Loop points = s.fuse(inner, label + "_all");
    if (s.extent(points).value_or(threads_ + 1) > threads_) {
      const auto cut = s.split(points, threads_, Tail::guard, label + "_turn", label + "_thread");
      s.reorder({cut.inner, cut.outer});
      points = cut.inner;
    }
    if (const auto sums = all.find(label); sums != all.end()) {
      s.compute_at(sums->second, points);
      const Loops reduce = s.reduce_loops_of(sums->second);
      if (!reduce.empty()) s.decompose(sums->second, reduce.front());
    }
    return points;
  }

  // Splits a long sum with few points into parts. A stage of its own computes these, and its points
  // are dealt out like those of other stages. Neighbouring threads add neighbouring elements.
  void split_sum(const Stage& stage) {
    const Nest nest = nest_of(s_, stage);
    if (nest.reduce.empty() || nest.in_scan || !nest.perfect) return;
    const Loop last = nest.reduce.back();
    const std::optional<int64_t> points = as_const(simplify(points_of(s_, nest.spatial))),
                                 length = s_.extent(last);
    if (!points || *points >= kFewThreads || length.value_or(0) < kLongSum) return;
    const std::string& label = stage.label();
    const std::vector<int64_t> all = {1, 4, 8, 16, 32, 64, 128};
    int64_t usual = 1;
    for (const int64_t parts : all)
      if (*length >= kUsuallySplit && *length / parts >= kLeastTerms &&
          *points * parts <= kManyThreads)
        usual = parts;
    const int64_t parts = s_.choose("parts_" + label, usual, all);
    if (parts == 1) return;
    ScheduleBuilder s = s_;
    const Loop part = s.split(last, parts, Tail::guard, label + "_long", "piece_" + label).inner;
    const Stage pieces = s.rfactor(stage, part, label + "_pieces");
    // The default split must not keep a kernel from the device.
    if (!s.sound() && parts == usual) return;
    s_ = std::move(s);
    split_.insert(pieces.label());
  }

  // Marks all stages in the same nest as done.
  bool attempt(const Stage& stage, bool tiled) {
    ScheduleBuilder s = s_;
    Done done = {stage.label()};
    if (!bind_nest(s, stage, tiled, done) || !s.sound() || !finishes(s)) return false;
    s_ = std::move(s);
    done_.merge(done);
    return true;
  }

  bool bind_nest(ScheduleBuilder& s, const Stage& stage, bool tiled, Done& done) {
    const std::string& label = stage.label();
    Nest nest = nest_of(s, stage);
    if (nest.spatial.empty() || !nest.perfect) return false;
    if (const LoopRef outer = find_loop(s.kernel().body, nest.spatial.front().name()))
      for (const StoreRef& store : stores_of(outer)) done.insert(store->label);
    const bool several = done.size() > 1;
    Stage sums;
    if (!nest.reduce.empty()) {  // the nest itself sums: in registers, then stored
      if (several) return false;
      sums = s.cache_write(stage, label + "_sum", "stack");
      if (!s.sound()) return false;
      nest = nest_of(s, stage);
    }
    const bool products = uses_products(s, sums.defined() ? sums : stage, sums.defined());
    const Loops inner = tile(s, nest, stage, tiled, products);
    Loops outer = s.loops_of(stage);
    std::erase_if(outer, [&](const Loop& loop) {
      return contains(inner, loop) ||
             find_loop(s.kernel().body, loop.name())->role == AxisRole::scan;
    });
    if (outer.empty()) return false;
    count_ = extent_of(s, outer.front());
    for (size_t i = 1; i < outer.size(); ++i) count_ = count_ * extent_of(s, outer[i]);
    const Loop all = s.fuse(outer, label + "_all");
    const int64_t threads = std::min(threads_, s.extent(all).value_or(threads_));
    const auto [block, thread] = s.split(all, threads, Tail::guard, label + "_block",
                                         label + "_thread");
    if (nest.in_scan) s.reorder({thread, block});
    const Loop at = nest.in_scan ? block : thread;
    if (!s.sound()) return false;
    if (sums.defined() && !move_sums(s, sums, at)) {
      if (!inner.empty() && s_.open() && s.sound())
        misfit_ = "a thread has more sums than its registers hold";
      return false;
    }
    absorb(s, at, done);
    for (size_t i = 0; i + 1 < inner.size(); ++i) s.unroll(inner[i]);
    if (!inner.empty()) s.vectorize(inner.back());
    s.bind(thread, thread_);
    if (!nest.in_scan) s.bind(block, block_);
    return true;
  }

  // True: the stage makes or reads sums of products, so neighbouring rows and columns share
  // operands. Squares do not count.
  static bool uses_products(const ScheduleBuilder& s, const Stage& stage, bool own) {
    const StoreRef reader = s.store_of(stage);
    return std::ranges::any_of(stores_of(s.kernel().body), [&](const StoreRef& store) {
      const auto* product = store->combiner == Combiner::add
                                ? as_binary(store->value, BinaryOp::mul)
                                : nullptr;
      return product && !equal(product->a, product->b) &&
             (own ? store->label == stage.label() : reads(reader, store->buffer));
    });
  }

  // Cuts a vector off the last loop and, for sums of products, a few rows off the loop before it.
  // Returns the inner loops, the lanes last.
  Loops tile(ScheduleBuilder& s, const Nest& nest, const Stage& stage, bool tiled, bool products) {
    const std::string& label = stage.label();
    const DType t = s.kernel().buffer(nest.store->buffer).dtype;
    const Loop last = nest.spatial.back();
    const std::optional<int64_t> n = s.extent(last);
    const int64_t usual = target_.lanes(dtype_bytes(t));
    const Expr index = nest.store->indices.empty() ? Expr(0) : nest.store->indices.back();
    const bool side_by_side = is_var(index, last.name());
    if (!tiled || !is_float(t) || usual < 2 || !n || *n % usual != 0 || !side_by_side) return {};
    lanes_ = s.choose("lanes_" + label, usual, {1, 2, 4, 8, 16});
    const int64_t vectors = products ? s.choose("vectors_" + label, 1, {1, 2, 4}) : 1,
                  columns = lanes_ * vectors;
    if (*n % columns != 0) {
      misfit_ = "the vectors do not fill loop '" + last.name() + "'";
      s.fail(misfit_);
      return {};
    }
    Loops inner = {last};
    if (*n > columns)
      inner = {s.split(last, columns, Tail::guard, label + "_vec", label + "_lane").inner};
    if (vectors > 1) {
      const auto cut = s.split(inner.back(), lanes_, Tail::guard, label + "_part",
                               label + "_element");
      inner = {cut.outer, cut.inner};
    }
    if (!products || nest.spatial.size() < 2) return inner;
    const Loop row = nest.spatial[nest.spatial.size() - 2];
    Expr points = 1;
    for (const Loop& loop : nest.spatial)
      points = points * (loop == last ? Expr(*n / columns) : extent_of(s, loop));
    const auto few_threads = [&](int64_t rows) { return typical(points) < rows * kFewThreads; };
    const int64_t dividing = rows_of(s.extent(row)),
                  rows = s.choose("rows_" + label, few_threads(dividing) ? 1 : dividing,
                                  {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16});
    const int64_t group = s.choose("group_" + label, 1, {1, 2, 4, 8, 16});
    if (rows > 1 && s.rules() && few_threads(rows))
      s.fail(misfit_ = "the rows leave too few threads");
    if (rows == 1 && group > 1) s.fail(misfit_ = "a single row has no groups");
    if (rows == 1) return inner;
    const auto tiles = s.split(row, rows, Tail::guard, label + "_tile", label + "_row");
    inner.insert(inner.begin(), tiles.inner);
    Loop near;  // tiles of rows of neighbouring threads
    if (group > 1 && s.extent(tiles.outer).value_or(1) % group != 0)
      s.fail(misfit_ = "the tiles of rows are no whole groups");
    else if (group > 1)
      near = s.split(tiles.outer, group, Tail::guard, label + "_far", label + "_near").inner;
    Loops order;
    for (const Loop& loop : s.spatial_loops_of(stage))
      if (!contains(inner, loop) && loop != near) order.push_back(loop);
    if (near.defined()) order.push_back(near);
    order.insert(order.end(), inner.begin(), inner.end());
    s.reorder(order);
    return inner;
  }

  static int64_t rows_of(std::optional<int64_t> extent) {
    for (const int64_t rows : {4, 7, 6, 5, 3, 2})
      if (extent && *extent % rows == 0) return rows;
    return 1;
  }

  // Moves sums into the loop that alone reads them, if each iteration needs few and recomputes
  // little.
  void absorb(ScheduleBuilder& s, const Loop& at, Done& done) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Stage& stage : s.stages()) {
        const LoopRef loop = find_loop(s.kernel().body, at.name());
        const StoreRef store = s.store_of(stage);
        const std::vector<StoreRef> stores = stores_of(loop);
        const bool inside = std::ranges::any_of(
            stores, [&](const StoreRef& other) { return other->label == stage.label(); });
        if (inside || split_.contains(stage.label()) || store->combiner == Combiner::none ||
            !reads(loop, store->buffer))
          continue;
        ScheduleBuilder trial = s;
        if (!move_sums(trial, stage, at)) continue;
        s = std::move(trial);
        done.insert(stage.label());
        moved = true;
        break;
      }
    }
  }

  bool move_sums(ScheduleBuilder& s, const Stage& stage, const Loop& at) {
    const Expr points = points_of(s, nest_of(s, stage).spatial);
    s.compute_at(stage, at);
    if (!s.sound()) return false;
    Expr here = 1;
    for (const Expr& extent : s.buffer(stage.buffer()).shape) here = here * extent;
    const std::optional<int64_t> each = as_const(simplify(here));
    if (!each || *each > kMostSums || *each * typical(count_) > 2 * typical(points)) return false;
    const Nest nest = nest_of(s, stage);
    Loops spatial;  // the stage's own loops, inside `at`
    bool behind = false;
    for (const Loop& loop : s.loops_of(stage)) {
      if (behind && !contains(nest.reduce, loop)) spatial.push_back(loop);
      behind |= loop == at;
    }
    if (nest.reduce.empty()) return true;
    if (spatial.empty()) {
      s.decompose(stage, nest.reduce.front());
      return s.sound();
    }
    Loop lane = spatial.back();
    spatial.pop_back();
    ScheduleBuilder trial = s;
    if (const int64_t columns = trial.extent(lane).value_or(1);
        columns > lanes_ && lanes_ > 1 && columns % lanes_ == 0) {
      const auto cut = trial.split(lane, lanes_, Tail::guard, lane.name() + "_part",
                                   lane.name() + "_element");
      spatial.push_back(cut.outer), lane = cut.inner;
    }
    trial.accumulate(stage, nest.reduce, spatial, lane);
    trial.unroll_part(nest.reduce.back());
    if (trial.sound()) s = std::move(trial);
    return true;
  }

  ScheduleBuilder s_;
  const ReduceStages* reduce_;
  const Target& target_;
  std::string block_, thread_;
  int64_t threads_ = kThreads;
  int64_t lanes_ = 1;
  std::string misfit_;  // reason why a tile that the point asks for is impossible
  Expr count_ = 1;      // iterations of the nest's outer loops
  Done done_;
  Done split_;  // stages of partial sums, which remain nests of their own
};

}  // namespace

Expected<Schedule> bound_schedule(const Kernel& kernel, const ReduceStages* reduce,
                                  const Target& target, Choices* choices) {
  return BoundSpace(kernel, reduce, target, choices).run();
}

}  // namespace tw
