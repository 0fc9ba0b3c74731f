// A schedule is a list of primitives that are applied one by one to a kernel. A step names loops by
// their variables and stages by the labels of their stores. It also gives the new names, so that
// later steps, and people, can refer to them.
//
//   schedule {
//     split i 14 -> i0 i1          ; for i -> for i0 { for i1 in 14 }, guarded if 14 is no factor
//     split j 64 shift -> j0 j1    ; the last block begins at extent - 64 and repeats some points
//     reorder j0 i0 k i1 j1
//     compute_at c i0
//     set_scope c register
//     vectorize j1
//   }
//
// ir/schedule/ has a file for each primitive, or for a few similar ones. Its first comment shows an
// example and says when the step is legal.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw {

struct Target;

enum class Tail : uint8_t {
  // An if (spatial) or a where (reduce) around the points beyond the extent; none if the factor
  // divides it
  guard,
  // Spatial only: the block's base is min(outer * factor, extent - factor). It needs extent >=
  // factor and a stage that only overwrites.
  shift,
};

// A factor of a stage's product
enum class Factor : uint8_t { left, right };
const char* factor_name(Factor factor);
const char* combiner_name(Combiner combiner);  // "add", "mul", "min" or "max"

// kKeyword begins the step's line in the text form.
namespace step {
struct Split {
  static constexpr const char* kKeyword = "split";
  std::string loop;
  int64_t factor;
  Tail tail = Tail::guard;
  std::string outer, inner;
};
// Joins two perfectly nested loops of the same role.
struct Fuse {
  static constexpr const char* kKeyword = "fuse";
  std::string outer, inner, fused;
};
// Orders loops of one perfect nest; `loops` lists them from the outside in.
struct Reorder {
  static constexpr const char* kKeyword = "reorder";
  std::vector<std::string> loops;
};
// Runs an innermost loop of constant extent as a vector.
struct Vectorize {
  static constexpr const char* kKeyword = "vectorize";
  std::string loop;
};
struct Unroll {
  static constexpr const char* kKeyword = "unroll";
  std::string loop;
};
// Shares a spatial loop, the outermost of its nest, among threads.
struct Parallel {
  static constexpr const char* kKeyword = "parallel";
  std::string loop;
};
// Moves the producer into the consumer's loop, shrunk to the part needed there.
struct ComputeAt {
  static constexpr const char* kKeyword = "compute_at";
  std::string stage, loop;
};
// Puts a pure producer (no combiner) in place of its readers' loads.
struct ComputeInline {
  static constexpr const char* kKeyword = "compute_inline";
  std::string stage;
};
// Makes the stage, renamed to `name`, compute into a new temp. A stage `stage` copies that to the
// old buffer.
struct CacheWrite {
  static constexpr const char* kKeyword = "cache_write";
  std::string stage, name, scope;
};
// Makes the stage read a copy of the buffer, which a new stage `name` makes.
struct CacheRead {
  static constexpr const char* kKeyword = "cache_read";
  std::string buffer, stage, name, scope;
};
// Computes a factor of the stage's sums beforehand, in a temp whose indices, made of the stage's
// loops, are `map`. A new stage `name` with `loops` fills it.
struct Pack {
  static constexpr const char* kKeyword = "pack";
  std::string stage;
  Factor factor;
  std::string name, scope;
  std::vector<Expr> map;
  std::vector<std::string> loops;
};
// Cuts a buffer's dimension into blocks, whose elements become the last dimension. Each stage that
// writes the buffer gets a loop over a block.
struct Block {
  static constexpr const char* kKeyword = "block";
  std::string buffer;
  int64_t dim, factor;
  std::vector<std::string> loops;  // in the order of the stages
};
// Makes one loop of the stage's loops, and one dimension of the buffers that it uses at them.
struct Flatten {
  static constexpr const char* kKeyword = "flatten";
  std::string stage, loop;
};
// Computes an integer factor of the stage's sums in a narrower type, and widens it.
struct Narrow {
  static constexpr const char* kKeyword = "narrow";
  std::string stage;
  Factor factor;
  DType type;
};
// Keeps a temp's integers in another type, which has all of them.
struct Retype {
  static constexpr const char* kKeyword = "retype";
  std::string buffer;
  DType type;
};
// Counts an integer factor of the stage's sums from another zero. A new stage `name` sums the
// excess, which the readers subtract.
struct Recount {
  static constexpr const char* kKeyword = "recount";
  std::string stage;
  Factor factor;
  int64_t zero;
  std::string name, scope;
};
// Lets a reduce loop begin later in a longer one, by an offset in terms of outer loops.
struct Skew {
  static constexpr const char* kKeyword = "skew";
  std::string loop;
  int64_t extent = 1;
  std::vector<Expr> offset;  // one index
};
// Sums over points that conditions leave out: a factor is 0 there.
struct Unguard {
  static constexpr const char* kKeyword = "unguard";
  std::string stage;
  Factor factor;
};
// Lets conditions hold for whole parts of loops. The added points hold what counts for nothing in
// the combiner.
struct Widen {
  static constexpr const char* kKeyword = "widen";
  std::string stage;
  std::vector<std::string> loops;
  std::vector<int64_t> factors;  // by loop
  Combiner combiner = Combiner::add;
};
struct SetScope {
  static constexpr const char* kKeyword = "set_scope";
  std::string buffer, scope;
};
// Moves the init store to a nest of its own right before `loop`.
struct DecomposeReduction {
  static constexpr const char* kKeyword = "decompose_reduction";
  std::string stage, loop;
};
// Separates the first, middle and last iterations.
struct Partition {
  static constexpr const char* kKeyword = "partition";
  std::string loop;
  int64_t front, back;
  std::string front_suffix, back_suffix;
};
// Separates `count` iterations at one end.
struct Peel {
  static constexpr const char* kKeyword = "peel";
  std::string loop;
  int64_t count;
  bool back = false;
  std::string suffix;
};
// Splits loops, then orders all outer loops outside all inner ones.
struct Tile {
  static constexpr const char* kKeyword = "tile";
  std::vector<std::string> loops;
  std::vector<int64_t> factors;
  std::vector<std::string> names;
};
// Moves the consumer into its producers' loop, restricted to what is complete there.
struct ReverseComputeAt {
  static constexpr const char* kKeyword = "reverse_compute_at";
  std::string stage, loop;
};
// Gives a stage inside its reader's loops a nest of its own in front of them.
struct ComputeRoot {
  static constexpr const char* kKeyword = "compute_root";
  std::string stage;
};
// Turns a reduce loop into an axis of partial results, which the stage then combines.
struct RFactor {
  static constexpr const char* kKeyword = "rfactor";
  std::string stage, loop, name;
};
// Keeps equal copies of temps. Stages that write one get `loops` over the copies; the others read
// those with the numbers `copy`.
struct Replicate {
  static constexpr const char* kKeyword = "replicate";
  std::vector<std::string> buffers;
  int64_t copies = 1;
  std::vector<Expr> copy;
  std::vector<std::string> loops;
};
// Moves the stage's statement up in front of that of another stage.
struct Hoist {
  static constexpr const char* kKeyword = "hoist";
  std::string stage, before;
};
// Makes the stride of `dim` equal offset modulo factor.
struct StorageAlign {
  static constexpr const char* kKeyword = "storage_align";
  std::string buffer;
  int64_t dim = 0, factor = 1, offset = 0;
};
// Rounds the extent up to a multiple of the factor. The added points contribute nothing: temps hold
// what counts for nothing in the combiner. With `repeat` they are points that nobody reads.
struct Pad {
  static constexpr const char* kKeyword = "pad";
  std::vector<std::string> loops;
  int64_t factor = 1;
  bool repeat = false;
  Combiner combiner = Combiner::add;
};
// Moves element [dims] of a temp to [map].
struct Layout {
  static constexpr const char* kKeyword = "layout";
  std::string buffer;
  std::vector<std::string> dims;
  std::vector<Expr> map;
};
// Prefetches what the loop reads `distance` iterations later: all at once, or in equal parts over
// the iterations of the loops down to `over`.
struct Prefetch {
  static constexpr const char* kKeyword = "prefetch";
  std::string buffer, loop;
  int64_t distance = 1, locality = 3;
  std::string over = {};
};
struct Annotate {
  static constexpr const char* kKeyword = "annotate";
  std::string loop, key, value;
};
struct VirtualThread {
  static constexpr const char* kKeyword = "virtual_thread";
  std::string loop;
};
// Binds the loop to an axis of the target.
struct Bind {
  static constexpr const char* kKeyword = "bind";
  std::string loop, axis;
};
// Makes the loop and its contents one unit.
struct Blockize {
  static constexpr const char* kKeyword = "blockize";
  std::string loop, name;
};
// Makes a block that an instruction of the target computes.
struct Tensorize {
  static constexpr const char* kKeyword = "tensorize";
  std::string loop, intrinsic, name;
};
// Lets an engine run a copying stage, with a wait for its end.
struct AsyncCopy {
  static constexpr const char* kKeyword = "async_copy";
  std::string stage;
};
// Runs the stages depth - 1 iterations ahead of the rest.
struct Pipeline {
  static constexpr const char* kKeyword = "pipeline";
  std::string loop;
  int64_t depth = 2;
  std::vector<std::string> stages;
};
// Each part's name and its stages
using RoleParts = std::vector<std::pair<std::string, std::vector<std::string>>>;
// Runs parts of a loop's body at the same time.
struct Roles {
  static constexpr const char* kKeyword = "roles";
  std::string loop;
  int64_t depth = 1;
  RoleParts parts;
};
// Copies the loop for runs in which all the symbols have the value.
struct Specialize {
  static constexpr const char* kKeyword = "specialize";
  std::string loop;
  int64_t value = 1;
  std::vector<std::string> symbols;
  std::string suffix;
};
}  // namespace step

using Step =
    std::variant<step::Split, step::Fuse, step::Reorder, step::Vectorize, step::Unroll,
                 step::Parallel, step::ComputeAt, step::ComputeInline, step::CacheWrite,
                 step::CacheRead, step::Pack, step::Block, step::Flatten, step::Narrow,
                 step::Retype, step::Recount, step::Unguard, step::Widen, step::Skew,
                 step::SetScope, step::DecomposeReduction, step::Partition, step::Peel, step::Tile,
                 step::ReverseComputeAt, step::ComputeRoot, step::RFactor, step::Replicate,
                 step::Hoist, step::StorageAlign, step::Pad, step::Layout, step::Prefetch,
                 step::Annotate, step::VirtualThread, step::Bind, step::Blockize, step::Tensorize,
                 step::AsyncCopy, step::Pipeline, step::Roles, step::Specialize>;

struct Schedule {
  std::vector<Step> steps;
};

// Limit of the numbers in steps, either side of 0: extents that they make are counted in 64 bits.
inline constexpr int64_t kMostStepNumber = int64_t{1} << 31;

// Blocks into which the schedule cuts a buffer, in order
std::vector<step::Block> blocks_of(const Schedule& schedule, const std::string& buffer);

// The scopes that temps may have: those of all targets, then the target's own
std::vector<std::string> scopes_of(const Target* target);
const std::string* scope_of(const Step& step);  // the temp's; null: the step names none

std::string print(const Step& step);          // one line, no newline
std::string print(const Schedule& schedule);  // "schedule {\n  …\n}\n"
Expected<Schedule> parse_schedule(std::string_view text, std::string_view file = "");
// The target lists the available axes, memories and intrinsics. Without one, no step may use any.
Expected<Kernel> apply(const Kernel& kernel, const Step& step, const Target* target = nullptr);
// Errors name the step's number and text. The kernel argument stays unchanged.
Expected<Kernel> apply(const Kernel& kernel, const Schedule& schedule,
                       const Target* target = nullptr);
// Applies the schedule and drops the result.
Error verify(const Schedule& schedule, const Kernel& kernel, const Target* target = nullptr);
std::string schedule_hash(const Schedule& schedule);

}  // namespace tw
