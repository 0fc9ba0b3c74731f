// The primitives share this: finding loops and stages, the ranges in scope, replacing one statement
// of a kernel. Paths and scopes list statements from the outside in. Errors are illegal_schedule,
// one sentence, naming loop or stage.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/schedule/schedule.h"
#include "ir/simplify.h"
#include "support/diag.h"

namespace tw::sched {

template <class... Args>
Error illegal(const char* format, Args&&... args) {
  return make_error(DiagCode::illegal_schedule, format, std::forward<Args>(args)...);
}

// The loops and ifs down to the first statement that matches, itself last; empty when none does.
std::vector<Stmt> find_path(const Stmt& root, const std::function<bool(const StmtNode&)>& matches);
// The path to the statement itself
std::vector<Stmt> find_path(const Stmt& root, const Stmt& s);
bool contains(const Stmt& root, const Stmt& s);
bool contains(const Stmt& root, const std::function<bool(const StmtNode&)>& matches);
// The loop last
Expected<std::vector<Stmt>> loop_path(const Kernel& kernel, const std::string& var);
// The store last
Expected<std::vector<Stmt>> stage_path(const Kernel& kernel, const std::string& label);
// Only serial loops are split, fused, marked
Error check_serial(const stmt::Loop& loop);
// No loop or symbol has the name yet
Error check_new_loop(const Kernel& kernel, const std::string& name);
// No stage or buffer has the name yet
Error check_new_stage(const Kernel& kernel, const std::string& name);

// Symbols and the loops of the path
Ranges ranges_of(const Kernel& kernel, std::span<const Stmt> path);
void add_range(Ranges& ranges, const stmt::Loop& loop);
void add_ranges(Ranges& ranges, std::span<const Stmt> path);  // those of the loops
// The sequence's statements, or the one that the body is
std::span<const Stmt> statements(const Stmt& body);
// Simplifies every expression with the loops in scope; drops ifs that always hold and statements
// that never run.
Stmt simplify_tree(const Stmt& s, Ranges ranges);

// `old` is found by identity; a null `with` drops it. Statements beside the way to it stay the same
// objects.
Stmt replace(const Stmt& root, const Stmt& old, const Stmt& with);
// The kernel with path.back() replaced by the simplified `with`.
Kernel with_replaced(const Kernel& kernel, std::span<const Stmt> path, const Stmt& with);

// Every load with the loops and ifs around it, in program order of the statements.
void visit_loads(
    const Stmt& root,
    const std::function<void(const expr::Load& load, std::span<const Stmt> scope)>& fn);
bool has_load(const Expr& e);
bool reads(const Stmt& root, BufferId buffer);
bool writes(const Stmt& root, BufferId buffer);
// The tree with the indices of every load, store and prefetch of the buffer mapped.
Stmt map_accesses(const Stmt& root, BufferId buffer,
                  const std::function<std::vector<Expr>(const std::vector<Expr>&)>& fn);

// Without the prefetches of buffers that got another number of dimensions.
Stmt without_stale_prefetches(const Kernel& kernel, const Stmt& root);

// A stage whose nest still is as lowered: at the top of the kernel or of scan loops, perfect,
// serial, its store's indices the spatial variables.
struct LoweredStage {
  std::vector<LoopRef> scans;  // the scan loops around the nest
  // a child of the kernel's body or of the last scan loop's (or the body itself)
  Stmt nest;
  std::vector<LoopRef> spatial;  // from the outside in
  std::vector<LoopRef> reduce;
  StoreRef store;
  std::vector<int> loop_of_dim;  // index into spatial; -1: a dimension of extent 1, index 0
  Expr extent_of_dim(size_t dim) const {
    return loop_of_dim[dim] < 0 ? Expr(1) : spatial[static_cast<size_t>(loop_of_dim[dim])]->extent;
  }
};
// in_scans: may be inside of scan loops
Expected<LoweredStage> lowered_stage(const Kernel& kernel, const std::string& label,
                                     bool in_scans = false);
// The stage alone writes its buffer, and nothing after its nest writes what it reads: its values
// may be computed later.
Error check_movable(const Kernel& kernel, const LoweredStage& stage);

// The nest that sets the stage's buffer to `init` over the spatial loops of `path` (store last):
// loops "<var>_init" of the same kinds, store "<label>.init".
Stmt init_nest(std::span<const Stmt> path);
Stmt without_init(const stmt::Store& store);
// The loop of a stage's regenerated or copied nest: "<stage>_<var>", or var itself when it has that
// form already.
inline std::string axis_name(const std::string& stage, const std::string& var) {
  return var.starts_with(stage + "_") ? var : stage + "_" + var;
}
inline std::string init_name(const std::string& var) { return var + "_init"; }
inline std::string init_label(const std::string& label) { return label + ".init"; }

// The tree with the suffix behind the names of its loops ("<var>_<suffix>"), stages and blocks
// ("<label>.<suffix>"), as copies need.
Stmt renamed(const Stmt& body, const std::string& suffix);
Error check_suffix(const Kernel& kernel, const stmt::Loop& loop, const Stmt& body,
                   const std::string& suffix);
Error check_new_block(const Kernel& kernel, const std::string& name);
std::string done_queue(const std::string& stage);  // of the stage's asynchronous copies
// The outermost place on the way to a store where nothing else is stored
size_t own_statement(std::span<const Stmt> path);
// The buffer gets `depth` slots, a first dimension indexed by iteration % depth wherever `where`
// uses it.
Kernel with_slots(const Kernel& kernel, BufferId buffer, int64_t depth, const Expr& iteration,
                  const Stmt& where);

// Nullopt when the shape is not constant
std::optional<int64_t> constant_bytes(const Buffer& buffer);

bool is_token(const StmtNode& s);  // gives or takes tokens
// The queue that a signal or a wait is of; empty for others
std::string queue_of(const StmtNode& s);
bool waits_for(const Stmt& root, const std::string& queue);  // a wait in it takes tokens
// None of its iterations exchanges tokens with others: their number and order are the loop's own.
Error check_no_tokens(const Kernel& kernel, const stmt::Loop& loop);

// True when iterations of `var` may store to the same place, because a shifted split made its
// blocks overlap.
bool overlaps(const stmt::Store& store, const std::string& var);
// Rules that must hold after every step: loop kinds fit their bodies, overlapping blocks only
// overwrite, temps in parallel loops are private.
Error check_rules(const Kernel& kernel);
// Rules that must hold at the end: stack and register temps are small and of constant shape; the
// indices of register temps are constant once unroll and vector loops are expanded.
Error check_scopes(const Kernel& kernel);

Expected<Kernel> apply_step(const Kernel& kernel, const step::Split& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Fuse& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Reorder& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Vectorize& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Unroll& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Parallel& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeAt& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeInline& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::CacheWrite& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::CacheRead& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::SetScope& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::DecomposeReduction& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Partition& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Peel& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Tile& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::ReverseComputeAt& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeRoot& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::RFactor& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::StorageAlign& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Pad& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Layout& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Prefetch& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Annotate& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::VirtualThread& s,
                            const Target* target);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Bind& s, const Target* target);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Blockize& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Tensorize& s, const Target* target);
Expected<Kernel> apply_step(const Kernel& kernel, const step::AsyncCopy& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Pipeline& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Roles& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Specialize& s);

}  // namespace tw::sched
