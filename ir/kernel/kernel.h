// Loop IR: a kernel is a list of buffers and a tree of statements. Its loops define what is
// computed. A schedule (ir/schedule/schedule.h) rewrites them for speed, the interpreter runs them,
// and back ends generate code from them. Statements are immutable, so trees and threads share them
// freely.
//
//   kernel @dense[batch](x: in f32[batch, 64], w: const f32[64, 10], y: out f32[batch, 10]) {
//     temp c: f32[batch, 10]
//     for i in batch { for j in 10 { for k in 64 reduce {
//       c: c[i, j] += x[i, k] * w[k, j] init 0
//     } } }
//     for i1 in batch { for j1 in 10 {
//       y: y[i1, j1] = max(0, c[i1, j1])
//     } }
//   }
//
// The kernel has a symbol `batch`, three parameters and a temp. Its two stages, `c` and `y`, are
// named by the labels of their stores. docs/reference/text-forms.md has the grammar.
//
// Stages and loops
// * A stage is a store with the loops around it that belong to it. Its name is the store's label,
//   which is unique in the kernel.
// * As lowered, every stage is a perfect nest of its own: spatial loops, then reduce loops. The
//   store's indices are exactly the spatial variables. Each buffer has one stage, except for update
//   stages and the first rows of carried buffers.
// * A loop runs from 0 to extent - 1. Its kind says how it runs: in order, in parallel, as a
//   vector.
// * Its role says what its iterations mean, and survives splits. Spatial iterations are
//   independent. Reduce iterations may be reordered, which may change the last bits of float sums.
//   Scan iterations run in order.
// * A scan loop holds whole stages. A carried buffer has rows by the loop's variable: one iteration
//   stores a row, and later ones may read it.
//
// Stores
// * A combining store (combiner != none) does buffer[...] = combine(buffer[...], value). With
//   `init` it first stores `init` where all reduce variables around it are 0. The primitive
//   decompose_reduction turns the init into a store of its own.
// * `where` guards the update and never the init. An `if` guards everything inside it.
// * A load outside its buffer's shape is an error, unless it is under a select or where whose
//   condition excludes it.
// * A `block` names a part of the tree. With `by`, an intrinsic of the target computes it. It means
//   its body.
//
// Buffers
// * Buffers never alias, with one exception: a call may make an `out` buffer declared `inplace x`
//   in the memory of the input x. No element of x may then be read once that element of the output
//   is stored (ir/kernel/in_place.h).
// * The scope of a temp says where it lives. global: in the kernel's workspace. thread: in a slice
//   of the workspace for each thread. stack: in the function that runs the innermost parallel
//   iteration. register: in SSA values, so all its indices must be constant once unroll and vector
//   loops are expanded. constant: computed from a constant while the model is compiled. The target
//   names the other scopes.
// * `per i` gives each iteration of the concurrent loop i its own temp.
//
// Concurrency
// * The iterations of a `bind` or `vthread` loop run at the same time, and so do the parts of a
//   `roles` statement. Only tokens (`signal`, `wait`) and barriers order them.
// * An `async` store may land at any time before somebody takes the token of a later `signal ...
//   async` of the same thread.
// * Two accesses to one element that nothing orders, one of them a write, are an error.
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
  output,    // "out"
  constant,  // "const": packed weights, read-only
  temp,      // "temp": lives inside the kernel
};

// Limit of the constant extents of loops and buffers, which leaves sums of them in 64 bits
inline constexpr int64_t kMostExtentOfKernels = int64_t{1} << 48;

// The scope of temps that stages without symbols make from one constant
inline constexpr const char* kConstantScope = "constant";

struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Expr> shape;  // physical, row-major; may use the kernel's symbols
  BufferRole role = BufferRole::temp;
  std::string scope = "global";
  // temp: the concurrent loop whose iterations each have their own buffer; empty: the kernel has
  // one
  std::string per{};
  std::vector<std::string> in_place{};  // output: the inputs whose memory it may take
};

// Counting semaphores: `signal` adds tokens and `wait` takes them. A kernel must end with the
// tokens it began with.
struct TokenQueue {
  std::string name;
  // Length of an array of queues; nullopt: a single queue, without index
  std::optional<int64_t> extent;
  int64_t initial = 0;  // tokens in each queue at the start
  std::string per{};    // concurrent loop, as in Buffer
};

enum class LoopKind : uint8_t {
  serial,
  parallel,  // threads share the iterations; one level, only serial scan loops around it
  vector,    // constant extent; all lanes evaluate the body at once
  unroll,    // constant extent; the body is written out
  vthread,   // constant extent; virtual threads, interleaved to hide latency
  // The iterations are those of a device axis, which the loop names: block.x, thread.x, ...
  bind,
};
inline constexpr int kLoopKindCount = 6;
bool is_concurrent(LoopKind k);  // vthread, bind
enum class AxisRole : uint8_t { spatial, reduce, scan };
inline constexpr int kAxisRoleCount = 3;
const char* loop_kind_name(LoopKind k);
const char* axis_role_name(AxisRole r);

enum class Combiner : uint8_t { none, add, mul, min, max };  // written =, +=, *=, min=, max=

// A note for passes and people that does not change any value. The value is a name or an integer.
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
  std::string axis{};  // device axis of a bound loop
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

// "block NAME { ... }" or "block NAME by INTRINSIC { ... }": a part of the tree that forms a unit
struct Block {
  std::string name;
  std::string intrinsic;  // empty: no intrinsic
  Stmt body;
};

// Parts that run at the same time
struct Roles {
  std::vector<std::string> names;
  std::vector<Stmt> parts;
};

// Gives tokens. With async they count when this thread's earlier asynchronous copies have landed.
struct Signal {
  std::string queue;
  Expr index{};  // undefined: the queue is no array
  int64_t count = 1;
  bool async = false;
};

struct Wait {
  std::string queue;
  Expr index{};  // undefined: the queue is no array
  int64_t count = 1;
};

// A point where all threads below one run of a bound loop meet
struct Barrier {
  std::string loop{};  // the outermost loop whose iterations meet
};

// A hint that the element will be read soon. The element need not exist.
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

// The statement as kind T, or null: `if (const auto* loop = as<stmt::Loop>(s))`.
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
// The statement as kind T, which it must be
template <stmt::Kind T>
const T& get(const Stmt& s) {
  const T* found = as<T>(s);
  TW_CHECK(found, "a statement of another kind");
  return *found;
}

// Calls the function that takes the statement's kind. Each kind needs one; a generic function takes
// all others.
template <class... Functions>
decltype(auto) match(const StmtNode& s, Functions&&... functions) {
  return match_kind(s.is, std::forward<Functions>(functions)...);
}
template <class... Functions>
decltype(auto) match(const Stmt& s, Functions&&... functions) {
  return match_kind(s->is, std::forward<Functions>(functions)...);
}

// A statement known to be a T, or none. It points to the same object in the tree.
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
// Flattens nested sequences. A single statement is returned as it is.
Stmt make_sequence(std::vector<Stmt> body);
// These check that the required parts of a loop, an if and a store are defined.
Stmt make_loop(std::string var, Expr extent, Stmt body, LoopKind kind = LoopKind::serial,
               AxisRole role = AxisRole::spatial);
Stmt make_if(Expr condition, Stmt body);
Stmt make_store(stmt::Store store);
bool is_empty(const Stmt& s);

// The direct children: the statements of a sequence, the body of a loop, if or block, the parts of
// roles
std::span<const Stmt> children(const StmtNode& s);
inline std::span<const Stmt> children(const Stmt& s) { return children(*s); }
// The statement over as many other children as it has
Stmt with_children(const Stmt& s, std::vector<Stmt> children);
Stmt with_body(const Stmt& s, Stmt body);  // s is a loop, an if or a block
// The body of a loop, an if or a block, or null
Stmt body_of(const Stmt& s);

struct Kernel {
  std::string name;
  // i64 parameters for extents and indices; the name says if it may be 0
  std::vector<std::string> symbols;
  // Parameters first, in call order (inputs, constants, outputs), then temps
  std::vector<Buffer> buffers;
  std::vector<TokenQueue> queues{};
  Stmt body;

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id.index)]; }
  Buffer& buffer(BufferId id) { return buffers[static_cast<size_t>(id.index)]; }
  std::optional<BufferId> find_buffer(std::string_view name) const;
  const TokenQueue* find_queue(std::string_view name) const;
};

// Visits every statement, parents first.
void visit(const Stmt& s, const std::function<void(const Stmt&)>& fn);
// Rebuilds bottom-up. fn returns null to keep the (rebuilt) statement, or an empty sequence to drop
// it.
Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn);
// Visits the whole expressions of one statement, but not of its children.
void visit_exprs(const StmtNode& s, const std::function<void(const Expr&)>& fn);
// fn maps each whole expression of the tree. An undefined result keeps the expression.
Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn);
Stmt substitute(const Stmt& s, std::string_view var, const Expr& value);
// Replaces the numbers of buffers in all loads, stores and prefetches.
Stmt with_buffers(const Stmt& s, const std::function<BufferId(BufferId)>& number);
// The statements around the store with that label, from the outside in; sequences are left out.
// Empty: no such store.
std::vector<Stmt> path_to(const Stmt& root, std::string_view label);
LoopRef find_loop(const Stmt& root, std::string_view var);  // empty: there is no such loop
std::vector<StoreRef> stores_of(const Stmt& root);          // in program order

// True: the text may name a loop, buffer, block or symbol. A name has letters, digits, '_' and '.',
// begins with a letter or '_', and is not a word of the language.
bool is_name(std::string_view text);

class Lexer;
std::string print(const Kernel& kernel);  // grammar: docs/reference/text-forms.md
Expected<Kernel> parse_kernel(std::string_view text, std::string_view file = "");  // not verified
Expected<Kernel> parse_kernel(Lexer& lexer);    // one kernel within a longer text
Error verify(const Kernel& kernel);             // every violation in one error
std::string kernel_hash(const Kernel& kernel);  // hashes the printed form without the kernel's name

}  // namespace tw
