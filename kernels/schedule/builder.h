// Builds schedules: steps in terms of the families, and at each decision its alternatives. These
// are the knobs of the template space (autotune/space.h).
//
//   const auto row = s.split(m.row, s.choose("rows", 6, {2, 4, 8}), Tail::guard, "i0", "i1");
//   s.unroll(row.inner);
//   s.parallelize({row.outer}, "yp");
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

// Builds a schedule step by step and applies each step to the kernel, so that later steps see the
// current loops.
class ScheduleBuilder {
 public:
  // Default distances of prefetched weights: rows of a panel, or steps of some pairs of rows
  static constexpr int64_t kRowsAhead = 16, kStepsAhead = 4;
  ScheduleBuilder(const Kernel& kernel, const Target& target, Choices* choices = nullptr)
      : kernel_(kernel), target_(&target), choices_(choices) {}

  const Kernel& kernel() const { return kernel_; }
  const Target& target() const { return *target_; }
  bool has(const Loop& loop) const { return bool(find_loop(kernel_.body, loop.name())); }
  bool has(const Stage& stage) const { return !path_to(kernel_.body, stage.label()).empty(); }
  // The constant extent; nullopt: it is symbolic, or the loop is absent
  std::optional<int64_t> extent(const Loop& loop) const;
  // The extent, constant or symbolic; undefined: the loop is absent
  Expr any_extent(const Loop& loop) const;
  // null: the buffer is absent
  const Buffer* find(const BufferName& buffer) const;
  const Buffer& buffer(const BufferName& buffer) const;  // the buffer must exist
  // nullopt: the size is symbolic, or the buffer is absent
  std::optional<int64_t> bytes_of(const BufferName& buffer) const;
  static std::optional<int64_t> bytes_of(const Buffer& buffer);
  Stages stages() const;                        // all stages, in the order of their stores
  StoreRef store_of(const Stage& stage) const;  // empty: the stage is absent
  // A factor of the product that the stage stores or adds; undefined: it is no product
  Expr factor_of(const Stage& stage, Factor side) const;
  bool reads_buffers(const Stage& stage, Factor side) const;  // false: the factor is a number
  bool reads(const Expr& e, const BufferName& buffer) const;
  // True: something that the stage reads moves by one element with the loop.
  bool reads_along(const Stage& stage, const Loop& loop) const;
  Loops loops_of(const Stage& stage) const;  // outermost first
  // The stage's loops inside one of them; none: the loop is not around the stage
  Loops loops_inside(const Stage& stage, const Loop& loop) const;
  Loops reduce_loops_of(const Stage& stage) const;
  Loops spatial_loops_of(const Stage& stage) const;
  // The loop with that variable, for variables that an analysis of the kernel found
  static Loop loop_of(const std::string& variable) { return Loop(variable); }
  BufferName name_of(BufferId id) const { return BufferName(kernel_.buffer(id).name); }

  // Names that steps derive from others. moved: a loop of a stage after compute_at. cached: loops
  // that copy the result of a stage (cache_write) or add its parts (rfactor). init_of: the nest
  // before the first iteration of sums. at_edge: a loop's part at one end (partition_edges,
  // peel_last). prologue_of: the first rounds of a pipelined copy.
  static Loop moved(const Stage& stage, const Loop& loop);
  static Loops moved(const Stage& stage, const Loops& loops);
  static Loops cached(const Stage& stage, const Loops& loops);
  static Loop init_of(const Loop& loop);
  static Stage init_of(const Stage& stage);
  enum class Edge : uint8_t { none, first, last };
  static constexpr std::array kEdges = {Edge::none, Edge::first, Edge::last};
  static Loop at_edge(const Loop& loop, Edge edge);
  static Loop prologue_of(const Loop& loop);

  // A decision. Returns the default value `usual`, or one of `others` if a space's point says so.
  // Names of knobs are unique in a schedule. What is usual may follow from other decisions, as the
  // rows of a tile do from its columns; `others` depend on the lowered kernel and on usual
  // decisions alone.
  int64_t choose(const std::string& knob, int64_t usual, const std::vector<int64_t>& others) const;
  // Calls `values` once for each space.
  std::vector<int64_t> choose(
      const std::string& knob,
      const std::function<std::vector<std::vector<int64_t>>()>& values) const;
  bool choose_switch(const std::string& knob, bool usual) const {
    return choose(knob, usual, {0, 1}) != 0;
  }
  // True: `others` should be what static rules allow. False: all values.
  bool rules() const;
  // True: points of a space decide. Otherwise code that only finds `others` may be skipped.
  bool open() const { return choices_ && choices_->open(); }

  // The steps below do nothing after a step has failed. Lists may contain absent loops, which are
  // skipped; regions of extent 1 have lost theirs. Families choose the names of new loops and
  // stages.
  struct Cut {
    Loop outer, inner;
  };
  Cut split(const Loop& loop, int64_t factor, Tail tail, const std::string& outer,
            const std::string& inner);
  // Splits a loop of sums with Tail::guard, and the loop of their init if that has a nest of its
  // own.
  Cut split_sums(const Loop& loop, int64_t factor, const std::string& outer,
                 const std::string& inner);
  void reorder(Loops loops);
  // Returns the remaining loop; none: all loops are absent.
  Loop fuse(Loops loops, const std::string& name);
  void vectorize(const Loop& loop);
  void unroll(const Loop& loop);
  void unroll(const Loops& loops);
  // Unrolls a few iterations, if a point says so (knob "unroll_" + loop). Returns the loop over the
  // unrolled parts. whole: no part may be cut short.
  Loop unroll_part(const Loop& loop, int64_t usual = 1, bool whole = false);
  // unroll_steps does the same for steps of an instruction's sums, which cannot be cut short.
  // by_element is true if the target takes elements from a vector, so that one load brings those of
  // several steps.
  bool by_element(const SumInstruction& instruction) const;
  Loop unroll_steps(const Loop& loop, const SumInstruction& instruction);
  void parallel(const Loop& loop);
  void bind(const Loop& loop, const std::string& axis);
  void compute_at(const Stage& stage, const Loop& loop);
  void compute_inline(const Stage& stage);
  Stage cache_write(const Stage& stage, const std::string& name, const std::string& scope);
  Stage cache_read(const BufferName& buffer, const Stage& stage, const std::string& name,
                   const std::string& scope);
  // Computes a factor of the stage's sums beforehand, in a new buffer whose dimensions have these
  // indices and loops.
  struct PackedDim {
    Expr index;
    std::string loop;
  };
  struct Packed {
    Stage stage;
    Loops loops;  // by dimension
  };
  Packed pack(const Stage& stage, Factor factor, const std::string& name, const std::string& scope,
              const std::vector<PackedDim>& dims);
  // Lets the loop run to a multiple of the factor: over points that nobody reads, or over points
  // that hold 0 and steps of sums that add nothing. Loops of nests that fill one temp are padded
  // together.
  void pad(const Loop& loop, int64_t factor);
  void pad(const Loops& loops, int64_t factor);
  void pad_zeros(const Loop& loop, int64_t factor);
  void pad_zeros(const Loops& loops, int64_t factor);
  // The added points hold what counts for nothing in the combiner.
  void pad_for(Combiner combiner, const Loop& loop, int64_t factor);
  // Lets the stage's conditions hold for whole parts of loops.
  struct Parts {
    Loop loop;
    int64_t factor = 1;
  };
  void widen(const Stage& stage, const std::vector<Parts>& parts,
             Combiner combiner = Combiner::add);
  void narrow(const Stage& stage, Factor factor, DType type);
  // Keeps the temp's integers in a type that has all of them. False: that cannot be shown.
  bool retype(const BufferName& buffer, DType type);
  // Counts the factor from another zero. The excess of the sums is a new buffer.
  Stage recount(const Stage& stage, Factor factor, int64_t zero, const std::string& name,
                const std::string& scope = kConstantScope);
  // Lets a reduce loop of that extent begin later, by an offset in terms of outer loops.
  void skew(const Loop& loop, int64_t extent, const Expr& offset);
  // Sums over points that conditions on the factor's loops leave out. The factor is 0 there.
  void unguard(const Stage& stage, Factor factor);
  Stage rfactor(const Stage& stage, const Loop& loop, const std::string& name);
  // Keeps equal copies of temps. Each stage that writes one has a loop over them, which replica_of
  // names. copy: the one that another stage reads.
  void replicate(const std::vector<BufferName>& buffers, int64_t copies,
                 const std::function<Expr(const Stage& reader)>& copy);
  static Loop replica_of(const Stage& writer) { return Loop(writer.label() + "_copy"); }
  // Moves the stage's statement up in front of that of another stage.
  void hoist(const Stage& stage, const Stage& before);
  void decompose(const Stage& stage, const Loop& loop);
  void tensorize(const Loop& loop, const std::string& intrinsic, const std::string& name);
  void virtual_thread(const Loop& loop);
  struct Part {
    std::string role;
    Stages stages;
  };
  void roles(const Loop& loop, int64_t depth, const std::vector<Part>& parts);
  // Scope register takes effect in finish(), because all loops of such a buffer must first be
  // unrolled or vectorized.
  void set_scope(const BufferName& buffer, const std::string& scope);
  void set_scope(const Stage& stage, const std::string& scope) { set_scope(stage.buffer(), scope); }
  void async_copy(const Stage& stage);
  void pipeline(const Loop& loop, int64_t depth, const Stages& stages);
  // map: the new index in terms of the variables `dims`.
  void storage_align(const BufferName& buffer, int64_t dim, int64_t factor, int64_t offset);
  void layout(const BufferName& buffer, std::vector<std::string> dims, std::vector<Expr> map);
  // place: the new index for an old one, which is made of variables.
  using Place = std::function<std::vector<Expr>(const std::vector<Expr>& at)>;
  void layout(const BufferName& buffer, const Place& place);
  // Makes the parts of a stage's places adjacent that an instruction covers: [.., row // rows, lane
  // // columns, row % rows, lane % columns]. Rows and columns are those of the instruction.
  void make_adjacent(const Stage& stage, const Loop& row, const Loop& lane,
                     const SumInstruction& instruction);
  // Cuts a dimension into blocks. A stage with loops a0 .. a3 that writes the buffer gets a loop a4
  // over a block, one with an, ac, .. a loop al; `lane` names that of a single stage otherwise.
  void block(const BufferName& buffer, int64_t dim, int64_t factor, const std::string& lane = "");
  // One loop and one dimension, where the stage may have them. False: it may not.
  bool flatten(const Stage& stage, const std::string& loop);
  // Prefetches what the loop reads `distance` iterations later. Does nothing if the loop or the
  // buffer is absent, or if the prefetch is illegal.
  void prefetch(const BufferName& buffer, const Loop& loop, int64_t distance);
  // Prefetches what the loop's next iteration reads, a part in each iteration of the inner loop, or
  // all at once if the former is illegal.
  void prefetch_over(const BufferName& buffer, const Loop& loop, const Loop& inner);
  // Prefetches constant weights, which come from the last cache or memory in a whole model. Does
  // nothing for other buffers. An iteration of loop `row` reads one row of a packed panel.
  void prefetch_weights(const BufferName& buffer, const Loop& row, int64_t distance);
  // Prefetches what the stage reads of inputs other than `main`, such as a residual from a farther
  // cache. This happens at the beginning of the loop around the sums, so the data arrive before the
  // sums are complete.
  void prefetch_operands(const Stage& stage, const BufferName& main, const Loop& loop);
  // Prefetches the next panel, in equal parts while the current one is used repeatedly. The
  // second-level cache must hold a panel and a third of the next one. False: this does not apply.
  bool prefetch_next_panel(const BufferName& buffer, const Loop& row);
  // Does both, with rows at the default distance. If loop `row` reads some pairs of rows (`pairs`),
  // it prefetches either the next panel or the next rows. Knob "prefetch_" + buffer: 1 for this, 0
  // for nothing, other values for rows at that distance.
  void prefetch_panels(const BufferName& buffer, const Loop& row, bool pairs);
  // Schedules the sums of `stage` over its reduce loops, which become the outermost loops in the
  // given order. Below them is the tile, unrolled, with its longer loop outside
  // (kernels/common/register_tile.h relies on that), and vectors along the lane. The init's nest,
  // in front of the first reduce loop, has the same form. The sums are in registers only after
  // set_scope. With an instruction, its columns of the lane and its depth form a block that it
  // computes. Its rows, over `instruction.row`, join that block; `tile` must then omit this loop.
  void accumulate(const Stage& stage, const Loops& reduce, const Loops& tile, const Loop& lane,
                  const SumInstruction& instruction = {});
  // Cuts few iterations off both ends of the loop, until every condition on it is decided in the
  // rest, and unrolls them. This must be the last step, since the copies have new names. Does
  // nothing if more than three on a side would be needed.
  // indices: until the terms of loads' indices are decided instead, since the ends of a padded row
  // come from elsewhere. Later steps see the rest of the loop under its name.
  enum class Edges : uint8_t { conditions, indices };
  void partition_edges(const Loop& loop, Edges edges = Edges::conditions);
  // Separates the last iteration of a loop of free extent, so the rest does not check where the
  // extent ends.
  void peel_last(const Loop& loop);
  // Copies the loop for runs in which the extent, a product of symbols, is 1. The copy omits the
  // loop's padding to whole tiles. This must be the last step.
  void specialize_one(const Loop& loop, const Expr& extent);
  // True: a condition in the loop depends on its variable.
  bool decides(const Loop& loop) const;
  // Fuses the loops, a prefix of a nest, and runs them on all threads. Knob "parallel_" + name is
  // the number of loops. apart: the innermost loop stays separate if the threads are as busy
  // without it.
  enum class Inner { fused, apart };
  void parallelize(const Loops& loops, const std::string& name, Inner inner = Inner::fused);
  // Schedules a stage whose nest has one store: vectors along its last axis, threads over the other
  // axes. A division in the threads' loop would take longer than a vector. To avoid one, the loop
  // over vectors stays separate, and so do its ends with the conditions on them. Knob "vectors_" +
  // label is the number of vectors in a step, and "unroll_" + label the number of unrolled steps.
  // A copy that reads along another loop than it writes along is transposed in registers, block by
  // block (knob "transpose_" + label), and one that writes each element of a row twice makes pairs
  // of vectors (knob "doubled_" + label).
  void map_nest(const Stage& stage);
  void map_nests(const Stages& stages);  // skips absent stages

  bool sound() const { return failed_.empty(); }  // true: no step has failed
  void fail(const std::string& reason);           // fails as a step would
  Expected<Schedule> finish();

 private:
  struct Transposition;
  std::optional<Transposition> transposition(const Stage& stage, const Loops& loops) const;
  void map_transposed(const Stage& stage, const Transposition& how, Loops loops);
  void map_doubled(const Stage& stage, Loops loops);
  // Runs `unrolled` and the vector `lane` innermost, and threads over `loops`.
  void map_block(const Stage& stage, const Loops& loops, const Loop& unrolled, const Loop& lane);
  // Splits a loop of a stage into blocks. The last one begins earlier where they do not divide the
  // loop, unless the stage must not compute points twice.
  Cut split_blocks(const Stage& stage, const Loop& loop, int64_t block, const std::string& outer,
                   const std::string& inner);
  Loop straighten(const Stage& stage, Loops& loops);
  void add(Step step);
  void add_block(const Stage& stage, const Loop& lane, const SumInstruction& instruction);
  void accumulate_rows(const Stage& stage, const Loops& reduce, Loops tile, const Loop& lane,
                       SumInstruction instruction);
  bool try_add(Step step);  // does nothing if the step is illegal
  Kernel kernel_;
  const Target* target_;
  Choices* choices_;
  Schedule schedule_;
  std::vector<step::SetScope> scopes_;
  std::vector<Diag> failed_;
};

// The loops of a sum: `reduce` from the outside in, `tile` and `lane` spatial
struct PairedSums {
  Stage stage;
  Loop paired;   // the packed weights have pairs of its steps innermost (pairs_depth)
  Loops reduce;  // includes `paired`
  // Loop of `reduce` over blocks of channels, some of which may join a step; may be none
  Loop blocks;
  Loops tile;
  Loop lane;
};
// The reduce loops after accumulate_pairs
struct PairedSteps {
  Loops rolled;    // around a step
  Loops straight;  // in a step; the caller unrolls them unless unrolled taps are around them
};
// Computes sums over even and odd steps of the paired loop in separate lanes (stage + "p"), below
// loop `at`, and adds them at the end. A few pairs make a step.
PairedSteps accumulate_pairs(ScheduleBuilder& s, const PairedSums& sums, const Loop& at);

// True: threads take blocks of rows (pixels) of the left operand instead of panels of the weights,
// because the operand is larger. The previous kernel's results for these rows are then in the
// thread's own caches, and no thread reads all of the operand.
bool takes_rows(const ScheduleBuilder& s, const BufferName& left, const BufferName& weights);

// The largest tile of an extent that fits `most` accumulators: a divisor if one is at least half of
// `most`, otherwise a balanced size.
int64_t tile_of(std::optional<int64_t> extent, int64_t most);

}  // namespace tw
