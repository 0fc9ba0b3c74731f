// Loop IR: one kernel = buffers + a statement tree. Immutable statements, shared freely between
// threads.
//
//   kernel @dense(x: in f32[128, 64], w: const f32[64, 32], b: const f32[32], y: out f32[128, 32])
//   {
//     temp c: f32[128, 32]
//     for i in 128 { for j in 32 { for k in 64 reduce {
//       c: c[i, j] += x[i, k] * w[k, j] init 0
//     } } }
//     for i1 in 128 { for j1 in 32 {
//       y: y[i1, j1] = max(0.0, c[i1, j1] + b[j1])
//     } }
//   }
//
// Semantics:
//  * A *stage* is a store leaf together with the loops around it that belong to it; its name is the
//  store's label, unique
//    in the kernel. As lowered, every stage is its own perfect nest over its axes: first spatial,
//    then reduce loops, and
//    the store's indices are exactly the spatial variables. Each buffer has one stage, but for
//    update stages and the
//    first rows of carried buffers.
//  * Loops run from 0 to extent-1. `role` says what an axis means and survives splits: spatial
//  iterations are independent,
//    reduce iterations may be reordered (floating-point sums may change in the last bits), scan
//    iterations run in order. A scan
//    loop holds whole stages: what one iteration stores in a buffer the next ones may read
//    (carried), rows of it by the loop's variable.
//  * A combining store (combiner != none) does buffer[...] = combine(buffer[...], value). With
//  `init` it first stores
//    `init` whenever all the reduce variables of the stage's enclosing loops are 0
//    (decompose_reduction makes that a store of its own).
//  * `where` guards the update only (never the init): points outside contribute nothing. An
//  `if_then` guards everything.
//  * Loads outside a buffer's shape are an error, except under a select or where whose condition
//  excludes them.
//  * Buffers never alias, but a call may make an `out` buffer declared `inplace x` in the memory of
//  the input x: then no element of x may be
//    read once that element of the output is stored (ir/kernel/in_place.h).
//  * Scope "global" temps belong to the kernel's workspace (arena); "stack" temps live in the
//  function that runs the
//    innermost parallel iteration; "thread" temps have a slice of the workspace for each thread;
//    "register" temps become SSA
//    values: all their indices must be constant once unroll and vector loops are expanded. Scope
//    names of devices come from the
//    Target. `per i`: each iteration of the concurrent loop i has its own.
//  * Concurrency: the iterations of a `bind` or `vthread` loop, and the parts of a `roles`
//  statement, run at the same time; they
//    are ordered by tokens (`signal`, `wait`) and barriers alone. An `async` store lands at any
//    time up to the moment when
//    somebody takes the token of a later `signal ... async` of the same thread. Two accesses of one
//    element, one of them a
//    write, that nothing orders are an error.
//  * A `block` names a part of the tree; `by` says which intrinsic of the target computes it. What
//  it means is its body.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "support/diag.h"
#include "support/variant.h"

namespace tw {

enum class BufferRole : uint8_t {
  input,     // "in": a tensor of the network or an intermediate result
  output,    // "out": written by this kernel
  constant,  // "const": packed weights, read-only
  temp,      // "temp": lives inside the kernel
};

struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Expr> shape;  // physical, row-major; may use the kernel's symbols
  BufferRole role = BufferRole::temp;
  std::string scope = "global";
  // temp: the concurrent loop each of whose iterations has its own; empty: one in the kernel
  std::string per{};
  std::vector<std::string> in_place{};  // output: inputs in whose memory a call may make it
};

// Counting semaphores: `signal` adds a token, `wait` takes some. They end with as many as they
// began with.
struct TokenQueue {
  std::string name;
  std::optional<int64_t> extent;  // an array of queues; none: one, without index
  int64_t initial = 0;            // tokens of each at the start
  std::string per{};              // as of buffers
};

enum class LoopKind : uint8_t {
  serial,
  parallel,  // iterations are spread over threads; one level, inside nothing but serial scan loops
  vector,    // constant extent; the body is evaluated for all lanes at once
  unroll,    // constant extent; expanded
  vthread,   // constant extent; virtual threads, interleaved to hide latency
  // Iterations are those of a device's axis, which the loop names: block.x, thread.x, ...
  bind,
};
inline constexpr int kLoopKindCount = 6;
bool is_concurrent(LoopKind k);  // vthread, bind
enum class AxisRole : uint8_t { spatial, reduce, scan };
inline constexpr int kAxisRoleCount = 3;
const char* loop_kind_name(LoopKind k);
const char* axis_role_name(AxisRole r);

enum class Combiner : uint8_t { none, add, mul, min, max };  // written =, +=, *=, min=, max=

// For passes and people; without meaning for the values. The value is a name or an integer
struct Annotation {
  std::string key, value;
};

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

namespace stmt {

struct Sequence {
  std::vector<Stmt> body;
};

struct Loop {
  std::string var;
  Expr extent;
  Stmt body;
  LoopKind kind = LoopKind::serial;
  AxisRole role = AxisRole::spatial;
  std::string axis{};  // of the device, where the loop is bound
  std::vector<Annotation> annotations{};
};

struct If {
  Expr condition;
  Stmt body;
};

struct Store {
  std::string label;
  BufferId buffer;
  std::vector<Expr> indices;
  Expr value;
  Combiner combiner = Combiner::none;
  Expr where{};  // undefined: always
  Expr init{};   // undefined: none
  bool async = false;
};

// "block NAME { ... }", "block NAME by INTRINSIC { ... }": a part that is one unit.
struct Block {
  std::string name;
  std::string intrinsic;  // empty: none
  Stmt body;
};

// Its parts run at the same time.
struct Roles {
  std::vector<std::string> names;  // one a part
  std::vector<Stmt> parts;
};

// Gives a token: an asynchronous one when this thread's asynchronous copies so far have landed.
struct Signal {
  std::string queue;
  Expr index{};  // undefined: the queue is no array
  int64_t count = 1;
  bool async = false;
};

struct Wait {
  std::string queue;
  Expr index{};       // undefined: the queue is no array
  int64_t count = 1;  // tokens that it takes
};

// All threads below one run of a bound loop meet.
struct Barrier {
  std::string loop{};  // the outermost of the loops whose iterations meet
};

// A hint: the element, which need not exist, will be read soon.
struct Prefetch {
  BufferId buffer;
  std::vector<Expr> indices;
  int64_t locality = 3;  // from 0 (used once) to 3 (kept in every cache)
};

using Any = std::variant<Sequence, Loop, If, Store, Block, Roles, Signal, Wait, Barrier, Prefetch>;
template <class T>
concept Kind = kAlternative<T, Any>;

}  // namespace stmt

struct StmtNode {
  stmt::Any is;
  template <stmt::Kind T>
  StmtNode(T kind) : is(std::move(kind)) {}  // NOLINT: any kind is a statement
};

// The statement as the kind that it is, or null: `if (const auto* loop = as<stmt::Loop>(s))`.
template <stmt::Kind T>
const T* as(const StmtNode& s) {
  return std::get_if<T>(&s.is);
}
template <stmt::Kind T>
const T* as(const Stmt& s) {
  return std::get_if<T>(&s->is);
}
template <stmt::Kind... T>
bool is(const StmtNode& s) {
  return (std::holds_alternative<T>(s.is) || ...);
}
template <stmt::Kind... T>
bool is(const Stmt& s) {
  return is<T...>(*s);
}
// Where it must be one
template <stmt::Kind T>
const T& get(const Stmt& s) {
  const T* found = as<T>(s);
  TW_CHECK(found, "a statement of another kind");
  return *found;
}

// Calls the function that takes the statement's kind: there is one for each, or one for all others.
template <class... Functions>
decltype(auto) match(const StmtNode& s, Functions&&... functions) {
  return match_kind(s.is, std::forward<Functions>(functions)...);
}
template <class... Functions>
decltype(auto) match(const Stmt& s, Functions&&... functions) {
  return match_kind(s->is, std::forward<Functions>(functions)...);
}

// A statement that is known to be a T, or none. It is the same object in the tree.
template <stmt::Kind T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(Stmt s) : node_(std::move(s)) {
    TW_CHECK(is<T>(node_), "a statement of another kind");
  }
  const T* operator->() const { return std::get_if<T>(&node_->is); }
  const T& operator*() const { return *std::get_if<T>(&node_->is); }
  explicit operator bool() const { return node_ != nullptr; }
  operator const Stmt&() const { return node_; }  // NOLINT: it is one
  const Stmt& stmt() const { return node_; }

 private:
  Stmt node_;
};
using LoopRef = Ref<stmt::Loop>;
using StoreRef = Ref<stmt::Store>;

Stmt make_stmt(StmtNode node);
// Flattens nested sequences; a single statement is returned as it is
Stmt make_sequence(std::vector<Stmt> body);
// These check that what a loop, a condition and a store need is there.
Stmt make_loop(std::string var, Expr extent, Stmt body, LoopKind kind = LoopKind::serial,
               AxisRole role = AxisRole::spatial);
Stmt make_if(Expr condition, Stmt body);
Stmt make_store(stmt::Store store);
bool is_empty(const Stmt& s);  // a sequence of nothing

// The statements right inside: a sequence's, a loop's one body, the parts of roles.
std::span<const Stmt> children(const StmtNode& s);
inline std::span<const Stmt> children(const Stmt& s) { return children(*s); }
// The statement around other children, as many as it has
Stmt with_children(const Stmt& s, std::vector<Stmt> children);
Stmt with_body(const Stmt& s, Stmt body);  // of a loop, an if or a block
// A loop's, an if's or a block's; null for others
Stmt body_of(const Stmt& s);

struct Kernel {
  std::string name;
  std::vector<std::string> symbols;  // i64 parameters that extents and indices may use, all >= 1
  // Parameters first: inputs, constants, outputs in call order, then temps
  std::vector<Buffer> buffers;
  std::vector<TokenQueue> queues{};
  Stmt body;

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id.index)]; }
  Buffer& buffer(BufferId id) { return buffers[static_cast<size_t>(id.index)]; }
  std::optional<BufferId> find_buffer(std::string_view name) const;
  const TokenQueue* find_queue(std::string_view name) const;
};

// Walks; the visitor sees statements parents first.
void visit(const Stmt& s, const std::function<void(const Stmt&)>& fn);
// Bottom-up rebuild; fn returns null to keep the (rebuilt) statement, or an empty block to drop it.
Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn);
// Every whole expression of one statement, not of those inside it.
void visit_exprs(const StmtNode& s, const std::function<void(const Expr&)>& fn);
// Fn maps each whole expression of a tree; undefined keeps it.
Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn);
Stmt substitute(const Stmt& s, std::string_view var, const Expr& value);
// The path of loops and ifs (outermost first) down to the store with that label; empty when there
// is none.
std::vector<Stmt> path_to(const Stmt& root, std::string_view label);
LoopRef find_loop(const Stmt& root, std::string_view var);  // none when there is none
std::vector<StoreRef> stores_of(const Stmt& root);          // in program order

// Letters, digits, '_' and '.', a letter or '_' first, and no word of the language: what loops,
// buffers, blocks and symbols may be called.
bool is_name(std::string_view text);

class Lexer;
std::string print(const Kernel& kernel);  // grammar: docs/reference/text-forms.md
Expected<Kernel> parse_kernel(std::string_view text, std::string_view file = "");  // not verified
Expected<Kernel> parse_kernel(Lexer& lexer);    // one kernel within a longer text
Error verify(const Kernel& kernel);             // every violation in one error
std::string kernel_hash(const Kernel& kernel);  // of the printed form without the name

}  // namespace tw
