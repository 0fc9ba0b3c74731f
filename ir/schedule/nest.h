// Tools that the primitives share: finding loops and stages, ranges in scope, replacing one
// statement of a kernel. Paths and scopes list statements from the outside in. Errors are
// illegal_schedule: one sentence that names the loop or stage.
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

// The end of an error about a name that is not there: "it has a, b"
std::string it_has(const std::vector<std::string>& names);
std::string it_has(const std::vector<LoopRef>& loops);
std::string it_has(const std::vector<StoreRef>& stages);

// The loops and ifs down to the first statement that matches, which is the last entry; empty: none
// matches.
std::vector<Stmt> find_path(const Stmt& root, const std::function<bool(const StmtNode&)>& matches);
// The path to the statement, which is the last entry
std::vector<Stmt> find_path(const Stmt& root, const Stmt& s);
bool contains(const Stmt& root, const Stmt& s);
bool contains(const Stmt& root, const std::function<bool(const StmtNode&)>& matches);
// The path to the loop, which is the last entry
Expected<std::vector<Stmt>> loop_path(const Kernel& kernel, const std::string& var);
// The path to the store, which is the last entry
Expected<std::vector<Stmt>> stage_path(const Kernel& kernel, const std::string& label);
Expected<BufferId> buffer_named(const Kernel& kernel, const std::string& name);
// Requires a serial loop, since only these are split, fused or marked.
Error check_serial(const stmt::Loop& loop);
// Requires that no loop or symbol has the name.
Error check_new_loop(const Kernel& kernel, const std::string& name);
// Requires that no stage or buffer has the name.
Error check_new_stage(const Kernel& kernel, const std::string& name);

Ranges ranges_of(const Kernel& kernel, std::span<const Stmt> path);
void add_range(Ranges& ranges, const stmt::Loop& loop);
void add_ranges(Ranges& ranges, std::span<const Stmt> path);
// The statements of a sequence, or the body itself as a single statement
std::span<const Stmt> statements(const Stmt& body);
// Simplifies every expression with the ranges of the loops in scope. Drops ifs that always hold and
// statements that never run.
Stmt simplify_tree(const Stmt& s, Ranges ranges);

// Replaces `old`, which is found by identity; a null `with` drops it. Statements not on the path to
// it remain the same objects.
Stmt replace(const Stmt& root, const Stmt& old, const Stmt& with);
// The kernel with path.back() replaced by the simplified `with`.
Kernel with_replaced(const Kernel& kernel, std::span<const Stmt> path, const Stmt& with);

// Adds a condition to every store, which must combine. A block of an instruction, which does
// without conditions, gets an if around it.
Stmt with_condition(const Stmt& body, const Expr& condition);

// The value where the condition holds, and otherwise the filling. A value that is the same filling
// under a condition of its own gets one condition for both.
Expr filled(const Expr& inside, const Expr& value, const Expr& filling, const Ranges& ranges);

// Visits every load with the loops and ifs around it, in program order.
void visit_loads(
    const Stmt& root,
    const std::function<void(const expr::Load& load, std::span<const Stmt> scope)>& fn);
bool has_load(const Expr& e);
bool reads(const Expr& e, BufferId buffer);
bool reads(const Stmt& root, BufferId buffer);
bool writes(const Stmt& root, BufferId buffer);
// Maps the indices of every load, store and prefetch of the buffer.
Stmt map_accesses(const Stmt& root, BufferId buffer,
                  const std::function<std::vector<Expr>(const std::vector<Expr>&)>& fn);

// Drops prefetches whose buffer has another number of dimensions than their indices.
Stmt without_stale_prefetches(const Kernel& kernel, const Stmt& root);

// A stage whose nest is still as lowered: perfect, serial, with the spatial variables as the
// store's indices
struct LoweredStage {
  // Scan loops around the nest, and serial loops and conditions around it and others
  std::vector<Stmt> around;
  // A child of the kernel's body or of the last of these, or that body itself
  Stmt nest;
  std::vector<LoopRef> spatial;  // from the outside in
  std::vector<LoopRef> reduce;
  StoreRef store;
  std::vector<int> loop_of_dim;  // index into spatial; -1: extent 1, index 0
  Expr extent_of_dim(size_t dim) const {
    return loop_of_dim[dim] < 0 ? Expr(1) : spatial[static_cast<size_t>(loop_of_dim[dim])]->extent;
  }
};
// inside: the nest may have statements around it
Expected<LoweredStage> lowered_stage(const Kernel& kernel, const std::string& label,
                                     bool inside = false);
// The number of statements at the head of the stage's path that are around a nest as lowered
size_t statements_around(std::span<const Stmt> path);
// The number of these that another nest with the expression's values must stay inside: all but scan
// loops in which nothing writes what it reads, and whose variables it does not use or runs through.
// Conditions in such a loop do not hold the nest either.
size_t scans_around(std::span<const Stmt> path, const Expr& e,
                    const std::vector<Expr>& run_through = {});
// True: no other code reads the buffer than what stands behind the stage's nest, in the same
// iteration of the loops around it.
bool read_behind_only(const Kernel& kernel, const LoweredStage& stage);
// Requires that no other stage writes the buffer, and that the stage does not read it.
Error check_alone(const Kernel& kernel, const LoweredStage& stage);
// Also requires that nothing after the nest writes what it reads. The stage's values may then be
// computed later.
Error check_movable(const Kernel& kernel, const LoweredStage& stage);

// The nest that sets the stage's buffer to `init` over the spatial loops of `path` (store last).
// The loops are "<var>_init" of the same kinds, the store is "<label>.init".
Stmt init_nest(std::span<const Stmt> path);
Stmt without_init(const stmt::Store& store);
// The name of a loop in a stage's rebuilt or copied nest: "<stage>_<var>", or var itself if it
// already has that form
inline std::string axis_name(const std::string& stage, const std::string& var) {
  return var.starts_with(stage + "_") ? var : stage + "_" + var;
}
inline std::string init_name(const std::string& var) { return var + "_init"; }
inline std::string init_label(const std::string& label) { return label + ".init"; }

// A copy's tree: adds the suffix to the names of loops ("<var>_<suffix>"), stages and blocks
// ("<label>.<suffix>").
Stmt renamed(const Stmt& body, const std::string& suffix);
Error check_suffix(const Kernel& kernel, const stmt::Loop& loop, const Stmt& body,
                   const std::string& suffix);
Error check_new_block(const Kernel& kernel, const std::string& name);
Error check_outside_instructions(std::span<const Stmt> path);  // the path ends with a loop
std::string done_queue(const std::string& stage);  // queue of the stage's asynchronous copies
// Position of the outermost statement on the path that contains no other store
size_t own_statement(std::span<const Stmt> path);
// Gives the buffer `depth` slots: a first dimension indexed by iteration % depth at all uses in
// `where`.
Kernel with_slots(const Kernel& kernel, BufferId buffer, int64_t depth, const Expr& iteration,
                  const Stmt& where);

// nullopt: the shape is not constant
std::optional<int64_t> constant_bytes(const Buffer& buffer);

bool is_token(const StmtNode& s);  // true: gives or takes tokens
// The queue of a signal or a wait; empty for other statements
std::string queue_of(const StmtNode& s);
// true: a wait in root takes its tokens
bool waits_for(const Stmt& root, const std::string& queue);
// Requires that no iteration of the loop reads what another one has stored in a slot of its own, as
// in a pipeline.
Error check_own_slots(const Kernel& kernel, const stmt::Loop& loop);
// Requires that the loop's iterations exchange no tokens with other code, so that their number and
// order may change.
Error check_no_tokens(const Kernel& kernel, const stmt::Loop& loop);

// True: iterations of `var` may store to the same place, because a shifted split made blocks
// overlap.
bool overlaps(const stmt::Store& store, const std::string& var);
// Rules that hold after every step: loop kinds fit their bodies, overlapping blocks only overwrite,
// and temps in parallel loops are private.
Error check_rules(const Kernel& kernel);
// Rules that hold after the last step: stack and register temps are small and of constant shape,
// and the indices of register temps are constant once unroll and vector loops are expanded.
Error check_scopes(const Kernel& kernel);
// Requires that temps may have the scope.
Error check_scope(const std::string& scope, const Target* target);

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
Expected<Kernel> apply_step(const Kernel& kernel, const step::Pack& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Narrow& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Retype& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Block& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Flatten& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Recount& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Unguard& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Widen& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Skew& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::SetScope& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::DecomposeReduction& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Partition& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Peel& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Tile& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::ReverseComputeAt& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeRoot& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::RFactor& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Replicate& s);
Expected<Kernel> apply_step(const Kernel& kernel, const step::Hoist& s);
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
