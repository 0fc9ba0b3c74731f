// Schedules: lists of primitives applied one by one to a kernel. Loops are named by their
// variables, stages by their store's label; new names are given in the step, so later steps (and
// people) can refer to them.
//
//   schedule {
//     split i 14 -> i0 i1          ; for i -> for i0 { for i1 in 14 }; guarded when 14 does not
//                                    divide the extent
//     split j 64 shift -> j0 j1    ; the last block starts at extent-64 instead of being guarded
//                                    (recomputes, never guards)
//     reorder j0 i0 k i1 j1
//     compute_at c i0
//     set_scope c register
//     vectorize j1
//   }
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw {

struct Target;

enum class Tail : uint8_t {
  // An if_then (spatial) or a where (reduce) around the points beyond the extent; none when the
  // factor divides
  guard,
  // Spatial only: base = min(outer * factor, extent - factor): needs extent >= factor, and a stage
  // that only overwrites
  shift,
};

// kKeyword begins the step's line in the text form.
namespace step {
struct Split {
  static constexpr const char* kKeyword = "split";
  std::string loop;
  int64_t factor;
  Tail tail = Tail::guard;
  std::string outer, inner;
};
struct Fuse {
  static constexpr const char* kKeyword = "fuse";
  std::string outer, inner, fused;
};  // perfectly nested, same role
// Loops of one perfect nest, in their new order from outside in
struct Reorder {
  static constexpr const char* kKeyword = "reorder";
  std::vector<std::string> loops;
};
struct Vectorize {
  static constexpr const char* kKeyword = "vectorize";
  std::string loop;
};  // innermost, constant extent
struct Unroll {
  static constexpr const char* kKeyword = "unroll";
  std::string loop;
};
struct Parallel {
  static constexpr const char* kKeyword = "parallel";
  std::string loop;
};  // outermost of its nest, spatial
// Moves the producer into the consumer's loop, shrunk to the footprint needed there
struct ComputeAt {
  static constexpr const char* kKeyword = "compute_at";
  std::string stage, loop;
};
// a pure producer (no combiner) disappears into its readers
struct ComputeInline {
  static constexpr const char* kKeyword = "compute_inline";
  std::string stage;
};
// The stage, now called `name`, computes into a new temp; stage `stage` copies it to the old buffer
struct CacheWrite {
  static constexpr const char* kKeyword = "cache_write";
  std::string stage, name, scope;
};
// The stage reads a copy (a new stage `name`) of the buffer
struct CacheRead {
  static constexpr const char* kKeyword = "cache_read";
  std::string buffer, stage, name, scope;
};
struct SetScope {
  static constexpr const char* kKeyword = "set_scope";
  std::string buffer, scope;
};
// Init store in a nest of its own right before `loop`
struct DecomposeReduction {
  static constexpr const char* kKeyword = "decompose_reduction";
  std::string stage, loop;
};
// First, middle and last iterations apart
struct Partition {
  static constexpr const char* kKeyword = "partition";
  std::string loop;
  int64_t front, back;
  std::string front_suffix, back_suffix;
};
// `count` iterations off one end
struct Peel {
  static constexpr const char* kKeyword = "peel";
  std::string loop;
  int64_t count;
  bool back = false;
  std::string suffix;
};
// Splits, then all outer loops outside of all inner ones
struct Tile {
  static constexpr const char* kKeyword = "tile";
  std::vector<std::string> loops;
  std::vector<int64_t> factors;
  std::vector<std::string> names;
};
// Moves the consumer into its producers' loop, restricted to what is complete there
struct ReverseComputeAt {
  static constexpr const char* kKeyword = "reverse_compute_at";
  std::string stage, loop;
};
// a stage inside of its reader's loops gets a nest of its own, before them
struct ComputeRoot {
  static constexpr const char* kKeyword = "compute_root";
  std::string stage;
};
// One reduce loop becomes an axis of partial results, which the stage then combines
struct RFactor {
  static constexpr const char* kKeyword = "rfactor";
  std::string stage, loop, name;
};
// Stride of `dim` = offset modulo factor
struct StorageAlign {
  static constexpr const char* kKeyword = "storage_align";
  std::string buffer;
  int64_t dim = 0, factor = 1, offset = 0;
};
// The extent becomes a multiple; what is beyond contributes nothing
struct Pad {
  static constexpr const char* kKeyword = "pad";
  std::string loop;
  int64_t factor = 1;
};
// Element [dims] of a temp moves to [map]
struct Layout {
  static constexpr const char* kKeyword = "layout";
  std::string buffer;
  std::vector<std::string> dims;
  std::vector<Expr> map;
};
// What the loop reads `distance` iterations later; all at once, or in equal parts over the
// iterations of the loops down to `over`.
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
struct Bind {
  static constexpr const char* kKeyword = "bind";
  std::string loop, axis;
};  // to an axis of the target
// The loop and all in it become one unit
struct Blockize {
  static constexpr const char* kKeyword = "blockize";
  std::string loop, name;
};
// ... which an instruction of the target computes
struct Tensorize {
  static constexpr const char* kKeyword = "tensorize";
  std::string loop, intrinsic, name;
};
// a copying stage is left to an engine, and waited for
struct AsyncCopy {
  static constexpr const char* kKeyword = "async_copy";
  std::string stage;
};
// The stages run depth - 1 iterations ahead of the rest
struct Pipeline {
  static constexpr const char* kKeyword = "pipeline";
  std::string loop;
  int64_t depth = 2;
  std::vector<std::string> stages;
};
// Part, its stages
using RoleParts = std::vector<std::pair<std::string, std::vector<std::string>>>;
// Parts of a loop's body run at the same time
struct Roles {
  static constexpr const char* kKeyword = "roles";
  std::string loop;
  int64_t depth = 1;
  RoleParts parts;
};
// A copy of the loop for runs in which all the symbols have the value
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
                 step::CacheRead, step::SetScope, step::DecomposeReduction, step::Partition,
                 step::Peel, step::Tile, step::ReverseComputeAt, step::ComputeRoot, step::RFactor,
                 step::StorageAlign, step::Pad, step::Layout, step::Prefetch, step::Annotate,
                 step::VirtualThread, step::Bind, step::Blockize, step::Tensorize, step::AsyncCopy,
                 step::Pipeline, step::Roles, step::Specialize>;

struct Schedule {
  std::vector<Step> steps;
};

std::string print(const Step& step);          // one line, no newline
std::string print(const Schedule& schedule);  // "schedule {\n  …\n}\n"
Expected<Schedule> parse_schedule(std::string_view text, std::string_view file = "");
// The target says which axes, scopes and intrinsics there are; without one no step may ask for any.
Expected<Kernel> apply(const Kernel& kernel, const Step& step, const Target* target = nullptr);
// Errors name the step's number and text; the kernel is unchanged by a failed step.
Expected<Kernel> apply(const Kernel& kernel, const Schedule& schedule,
                       const Target* target = nullptr);
// Apply without the result
Error verify(const Schedule& schedule, const Kernel& kernel, const Target* target = nullptr);
std::string schedule_hash(const Schedule& schedule);

}  // namespace tw
