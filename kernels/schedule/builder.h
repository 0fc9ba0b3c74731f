// Builds schedules: steps in the families' words, and at each decision what else could be done,
// which are the knobs of the template space (autotune/space.h).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/schedule/schedule.h"
#include "ir/target.h"
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
  bool has_loop(const std::string& name) const { return find_loop(kernel_.body, name) != nullptr; }
  bool has_stage(const std::string& label) const { return !path_to(kernel_.body, label).empty(); }
  // Constant extent; nullopt: symbolic or no such loop
  std::optional<int64_t> extent(const std::string& loop) const;
  std::optional<int64_t> bytes_of(
      const std::string& buffer) const;  // nullopt: symbolic or no such buffer
  std::vector<std::string> loops_of(const std::string& label) const;  // outermost first
  std::vector<std::string> reduce_loops_of(const std::string& label) const;
  std::vector<std::string> spatial_loops_of(const std::string& label) const;

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
  // where a list is given.
  void split(const std::string& loop, int64_t factor, Tail tail, const std::string& outer,
             const std::string& inner);
  void reorder(std::vector<std::string> loops);
  // The surviving loop's name, "" if none
  std::string fuse(std::vector<std::string> loops, const std::string& name);
  void vectorize(const std::string& loop);
  void unroll(const std::string& loop);
  // A few iterations in one straight line, where a point says so (knob "unroll_" + loop): `loop` is
  // then the loop over such parts.
  void unroll_part(std::string& loop);
  void parallel(const std::string& loop);
  void bind(const std::string& loop, const std::string& axis);
  void compute_at(const std::string& stage, const std::string& loop);
  void compute_inline(const std::string& stage);
  void cache_write(const std::string& stage, const std::string& name, const std::string& scope);
  void tensorize(const std::string& loop, const std::string& intrinsic, const std::string& name);
  void virtual_thread(const std::string& loop);
  void roles(const std::string& loop, int64_t depth, step::RoleParts parts);
  // register takes effect in finish(): such a buffer wants all its loops unrolled or vectorized
  // first.
  void set_scope(const std::string& buffer, const std::string& scope);
  // Asks for what is read some iterations of the loop later. Nothing happens where the loop or the
  // buffer is not there, or where a prefetch is not legal.
  void prefetch(const std::string& buffer, const std::string& loop, int64_t distance);
  // What the loop's next iteration reads, a part in each iteration of the inner loop; at once where
  // that is not legal.
  void prefetch_over(const std::string& buffer, const std::string& loop, const std::string& inner);
  // The same for constant weights, which come from the last cache or memory in a whole model;
  // nothing for others. Loop `row` reads one row of a packed panel an iteration.
  void prefetch_weights(const std::string& buffer, const std::string& row, int64_t distance);
  // What the stage reads of other inputs than x (a residual, from a farther cache), at the
  // beginning of the loop around it: there in time when the sums are complete.
  void prefetch_operands(const std::string& stage, const std::string& loop);
  // Where a panel that fits the second-level cache beside a third of the next one is used again and
  // again: the next one, in equal parts meanwhile. False: nowhere.
  bool prefetch_next_panel(const std::string& buffer, const std::string& row);
  // Both, rows at the usual distance. Loop `row` may read some pairs of rows (`pairs`): then the
  // next panel or the next rows. Knob "prefetch_" + buffer: 1 as said, 0 nothing, else rows at that
  // distance.
  void prefetch_panels(const std::string& buffer, const std::string& row, bool pairs);
  void cache_read(const std::string& buffer, const std::string& stage, const std::string& name,
                  const std::string& scope);
  void async_copy(const std::string& stage);
  void pipeline(const std::string& loop, int64_t depth, std::vector<std::string> stages);
  void layout(const std::string& buffer, std::vector<std::string> dims, std::vector<Expr> map);
  void rfactor(const std::string& stage, const std::string& loop, const std::string& name);
  void decompose(const std::string& stage, const std::string& loop);
  // The sums of `stage` over its reduce loops, those outermost in the given order: below them the
  // tile, unrolled, its longer loop outside (kernels/common/register_tile.h counts on it), and
  // vectors along the lane, in the init's nest (before the first of the reduce loops) too. In
  // registers only with set_scope.
  void accumulate(const std::string& stage, const std::vector<std::string>& reduce,
                  const std::vector<std::string>& tile, const std::string& lane);
  // Cuts as few iterations off the ends of the loop as it takes to decide every condition on it in
  // the rest, and unrolls what is cut off. Last of the steps: the copies have names of their own.
  // Nothing happens where three on each side are too few.
  void partition_edges(const std::string& loop);
  // The last iteration of a loop of free extent apart, "_z": the rest does not ask where the extent
  // ends.
  void peel_last(const std::string& loop);
  // Whether a condition in the loop depends on its variable.
  bool decides(const std::string& loop) const;
  // Fuses the loops (a prefix of a nest) and runs them on all threads. Knob "parallel_" + name: how
  // many of the loops.
  void parallelize(const std::vector<std::string>& loops, const std::string& name);
  // The store with that label and nothing else in its nest: vectors along its last axis, threads
  // over the others. Knobs "vectors_" + label, how many in one step, and "unroll_" + label, how
  // many steps in one line.
  void map_nest(const std::string& label);

  bool sound() const { return failed_.empty(); }  // no step has failed
  void fail(const std::string& reason);           // as if a step had
  Expected<Schedule> finish();

 private:
  void add(Step step);
  bool try_add(Step step);  // nothing happens where it is not legal
  Kernel kernel_;
  const Target* target_;
  Choices* choices_;
  Schedule schedule_;
  std::vector<step::SetScope> scopes_;
  std::vector<Diag> failed_;
};

// The reduce loop of stage acc whose pairs of steps the packed weights hold innermost
// (pairs_depth); "": none.
std::string paired_loop(const ScheduleBuilder& s);
// Below loop `at`: the sums of `stage` over even and odd steps of `paired` in lanes of their own
// (stage + "p"), added at the end. Other arguments as of ScheduleBuilder::accumulate, the loops
// those of the stage as lowered. A few pairs make a step: what is left of their loop
// (+ "t" when split) and loop "rct" of channel blocks, for the caller to unroll where no unrolled
// taps are around them. The result: the loops of `reduce` outside of a step.
std::vector<std::string> accumulate_pairs(ScheduleBuilder& s, const std::string& stage,
                                          const std::string& at, const std::string& paired,
                                          std::vector<std::string> reduce,
                                          const std::vector<std::string>& tile,
                                          const std::string& lane);

// A window of the pool behind a convolution, which reads stage conv: its extent along each spatial
// axis. Empty: no pool.
std::vector<int64_t> pool_window(const ScheduleBuilder& s);

// Whether threads take blocks of rows (pixels) of the left operand and not panels of the weights w:
// where it is the larger one. What the kernel before has made of them is then in their own caches,
// and nobody reads all of it.
bool takes_rows(const ScheduleBuilder& s, const std::string& left);

// Largest tile of an extent that fits `most` accumulators: a divisor when one is at least half of
// it, else balanced.
int64_t tile_of(std::optional<int64_t> extent, int64_t most);

}  // namespace tw
