// Builds schedules: steps in the families' words, and at each decision what else could be done,
// which are the knobs of the template space (autotune/space.h).
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/schedule/schedule.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/schedule/choices.h"

namespace tw {

// Builds a schedule step by step against the kernel it rewrites, so that later steps can look at
// the loops there are.
class ScheduleBuilder {
 public:
  // Usual distances of weights: rows of a panel, steps of some pairs of them
  static constexpr int64_t kRowsAhead = 16, kStepsAhead = 4;
  ScheduleBuilder(const Kernel& kernel, const Target& target, Choices* choices = nullptr)
      : kernel_(kernel), target_(&target), choices_(choices) {}

  const Kernel& kernel() const { return kernel_; }
  const Target& target() const { return *target_; }
  bool has(const Loop& loop) const { return bool(find_loop(kernel_.body, loop.name())); }
  bool has(const Stage& stage) const { return !path_to(kernel_.body, stage.label()).empty(); }
  // Constant extent; nullopt: symbolic or no such loop
  std::optional<int64_t> extent(const Loop& loop) const;
  // Of any kind; undefined: no such loop
  Expr any_extent(const Loop& loop) const;
  // Null: no such buffer
  const Buffer* find(const BufferName& buffer) const;
  const Buffer& buffer(const BufferName& buffer) const;  // that there is
  // Nullopt: symbolic or no such buffer
  std::optional<int64_t> bytes_of(const BufferName& buffer) const;
  static std::optional<int64_t> bytes_of(const Buffer& buffer);
  Stages stages() const;                        // of the kernel, in the order of their stores
  StoreRef store_of(const Stage& stage) const;  // none: no such stage
  Loops loops_of(const Stage& stage) const;     // outermost first
  Loops reduce_loops_of(const Stage& stage) const;
  Loops spatial_loops_of(const Stage& stage) const;
  // The kernel's loop of that variable, which an analysis of the kernel found.
  static Loop loop_of(const std::string& variable) { return Loop(variable); }
  BufferName name_of(BufferId id) const { return BufferName(kernel_.buffer(id).name); }

  // Names that steps derive from others: of a stage's loop once the stage was moved (compute_at),
  // of the loops that copy its result (cache_write) or add its parts (rfactor), of the nest before
  // the first iteration of its sums, of a loop's part at an edge (partition_edges, peel_last), of a
  // pipelined copy's first rounds.
  static Loop moved(const Stage& stage, const Loop& loop);
  static Loops moved(const Stage& stage, const Loops& loops);
  static Loops cached(const Stage& stage, const Loops& loops);
  static Loop init_of(const Loop& loop);
  static Stage init_of(const Stage& stage);
  enum class Edge : uint8_t { none, first, last };
  static constexpr std::array kEdges = {Edge::none, Edge::first, Edge::last};
  static Loop at_edge(const Loop& loop, Edge edge);
  static Loop prologue_of(const Loop& loop);

  // A decision: the usual value, unless a point of a space says otherwise, which may say one of
  // `others`. Names of knobs are unique in a schedule, and what they offer depends on the kernel as
  // lowered, not on other decisions.
  int64_t choose(const std::string& knob, int64_t usual, const std::vector<int64_t>& others) const;
  // Asked for once a space
  std::vector<int64_t> choose(
      const std::string& knob,
      const std::function<std::vector<std::vector<int64_t>>()>& values) const;
  bool choose_switch(const std::string& knob, bool usual) const {
    return choose(knob, usual, {0, 1}) != 0;
  }
  // Whether `others` are to be what static rules allow, or all there are
  bool rules() const;
  // Whether somebody else decides: what is only needed for `others` may be left out if not
  bool open() const { return choices_ != nullptr; }

  // Each does nothing after a failed step; absent loops (extent 1 regions are dropped) are skipped
  // where a list is given. Names of new loops and stages are the family's own.
  struct Cut {
    Loop outer, inner;
  };
  Cut split(const Loop& loop, int64_t factor, Tail tail, const std::string& outer,
            const std::string& inner);
  // The same of a loop of sums, by Tail::guard, and of that over which they begin, where they do so
  // in a nest of their own.
  Cut split_sums(const Loop& loop, int64_t factor, const std::string& outer,
                 const std::string& inner);
  void reorder(Loops loops);
  // The surviving loop; none if there was none
  Loop fuse(Loops loops, const std::string& name);
  void vectorize(const Loop& loop);
  void unroll(const Loop& loop);
  void unroll(const Loops& loops);
  // A few iterations in one straight line, where a point says so (knob "unroll_" + loop). The
  // result: the loop over such parts. whole: none is cut short.
  Loop unroll_part(const Loop& loop, int64_t usual = 1, bool whole = false);
  // The same for steps of an instruction's sums, which cannot be cut short, and whose elements come
  // with one load where the target takes them from a vector.
  bool by_element(const SumInstruction& instruction) const;
  Loop unroll_steps(const Loop& loop, const SumInstruction& instruction);
  void parallel(const Loop& loop);
  void bind(const Loop& loop, const std::string& axis);
  void compute_at(const Stage& stage, const Loop& loop);
  void compute_inline(const Stage& stage);
  Stage cache_write(const Stage& stage, const std::string& name, const std::string& scope);
  Stage cache_read(const BufferName& buffer, const Stage& stage, const std::string& name,
                   const std::string& scope);
  Stage rfactor(const Stage& stage, const Loop& loop, const std::string& name);
  void decompose(const Stage& stage, const Loop& loop);
  void tensorize(const Loop& loop, const std::string& intrinsic, const std::string& name);
  void virtual_thread(const Loop& loop);
  struct Part {
    std::string role;
    Stages stages;
  };
  void roles(const Loop& loop, int64_t depth, const std::vector<Part>& parts);
  // Register takes effect in finish(): such a buffer wants all its loops unrolled or vectorized
  // first.
  void set_scope(const BufferName& buffer, const std::string& scope);
  void set_scope(const Stage& stage, const std::string& scope) { set_scope(stage.buffer(), scope); }
  void async_copy(const Stage& stage);
  void pipeline(const Loop& loop, int64_t depth, const Stages& stages);
  // map: the new index from variables that `dims` name.
  void storage_align(const BufferName& buffer, int64_t dim, int64_t factor, int64_t offset);
  void layout(const BufferName& buffer, std::vector<std::string> dims, std::vector<Expr> map);
  // Asks for what is read some iterations of the loop later. Nothing happens where the loop or the
  // buffer is not there, or where a prefetch is not legal.
  void prefetch(const BufferName& buffer, const Loop& loop, int64_t distance);
  // What the loop's next iteration reads, a part in each iteration of the inner loop; at once where
  // that is not legal.
  void prefetch_over(const BufferName& buffer, const Loop& loop, const Loop& inner);
  // The same for constant weights, which come from the last cache or memory in a whole model;
  // nothing for others. Loop `row` reads one row of a packed panel an iteration.
  void prefetch_weights(const BufferName& buffer, const Loop& row, int64_t distance);
  // What the stage reads of other inputs than `main` (a residual, from a farther cache), at the
  // beginning of the loop around it: there in time when the sums are complete.
  void prefetch_operands(const Stage& stage, const BufferName& main, const Loop& loop);
  // Where a panel that fits the second-level cache beside a third of the next one is used again and
  // again: the next one, in equal parts meanwhile. False: nowhere.
  bool prefetch_next_panel(const BufferName& buffer, const Loop& row);
  // Both, rows at the usual distance. Loop `row` may read some pairs of rows (`pairs`): then the
  // next panel or the next rows. Knob "prefetch_" + buffer: 1 as said, 0 nothing, else rows at that
  // distance.
  void prefetch_panels(const BufferName& buffer, const Loop& row, bool pairs);
  // The sums of `stage` over its reduce loops, those outermost in the given order: below them the
  // tile, unrolled, its longer loop outside (kernels/common/register_tile.h counts on it), and
  // vectors along the lane, in the init's nest (before the first of the reduce loops) too. In
  // registers only with set_scope. With an instruction its columns of the lane and its depth are a
  // block that it computes; so are its rows of `instruction.row`, one of the tile's loops that
  // `tile` then leaves out.
  void accumulate(const Stage& stage, const Loops& reduce, const Loops& tile, const Loop& lane,
                  const SumInstruction& instruction = {});
  // Cuts as few iterations off the ends of the loop as it takes to decide every condition on it in
  // the rest, and unrolls what is cut off. Last of the steps: the copies have names of their own.
  // Nothing happens where three on each side are too few.
  void partition_edges(const Loop& loop);
  // The last iteration of a loop of free extent apart: the rest does not ask where the extent ends.
  void peel_last(const Loop& loop);
  // A copy of the loop for runs in which the extent, a product of symbols, is 1: what the loop pads
  // to whole tiles is left out there. Last of the steps.
  void specialize_one(const Loop& loop, const Expr& extent);
  // Whether a condition in the loop depends on its variable.
  bool decides(const Loop& loop) const;
  // Fuses the loops (a prefix of a nest) and runs them on all threads. Knob "parallel_" + name: how
  // many of the loops. `apart`: the innermost stays by itself where the threads are as busy.
  enum class Inner { fused, apart };
  void parallelize(const Loops& loops, const std::string& name, Inner inner = Inner::fused);
  // The stage's store and nothing else in its nest: vectors along its last axis, threads over the
  // others. A division of the threads' loop takes longer than a vector: where there would be one,
  // the loop over vectors stays apart, and its ends with the conditions on them. Knobs "vectors_" +
  // label, how many in one step, and "unroll_" + label, how many steps in one line.
  void map_nest(const Stage& stage);
  void map_nests(const Stages& stages);  // those that are there

  bool sound() const { return failed_.empty(); }  // no step has failed
  void fail(const std::string& reason);           // as if a step had
  Expected<Schedule> finish();

 private:
  void add(Step step);
  void add_block(const Stage& stage, const Loop& lane, const SumInstruction& instruction);
  void accumulate_rows(const Stage& stage, const Loops& reduce, Loops tile, const Loop& lane,
                       SumInstruction instruction);
  bool try_add(Step step);  // nothing happens where it is not legal
  Kernel kernel_;
  const Target* target_;
  Choices* choices_;
  Schedule schedule_;
  std::vector<step::SetScope> scopes_;
  std::vector<Diag> failed_;
};

// A sum's loops: `reduce` from the outside in, spatial ones `tile` and `lane`.
struct PairedSums {
  Stage stage;
  Loop paired;   // whose pairs of steps the packed weights hold innermost (pairs_depth)
  Loops reduce;  // `paired` among them
  Loop blocks;   // of `reduce`: over blocks of channels, some of which may join a step; may be none
  Loops tile;
  Loop lane;
};
// What accumulate_pairs made of the reduce loops.
struct PairedSteps {
  Loops rolled;    // outside of a step
  Loops straight;  // in a step, for the caller to unroll where no unrolled taps are around them
};
// Below loop `at`: sums over even and odd steps of the paired loop in lanes of their own (stage +
// "p"), added at the end. A few pairs make a step.
PairedSteps accumulate_pairs(ScheduleBuilder& s, const PairedSums& sums, const Loop& at);

// Whether threads take blocks of rows (pixels) of the left operand and not panels of the weights:
// where it is the larger one. What the kernel before has made of them is then in their own caches,
// and nobody reads all of it.
bool takes_rows(const ScheduleBuilder& s, const BufferName& left, const BufferName& weights);

// Largest tile of an extent that fits `most` accumulators: a divisor when one is at least half of
// it, else balanced.
int64_t tile_of(std::optional<int64_t> extent, int64_t most);

}  // namespace tw
