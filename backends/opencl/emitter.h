// Writes one launch as a function. It walks statements top-down. Shared parts of a store's value
// become constants before it, and a load under a condition is never executed outside of it.
// `unroll` loops repeat their text, `vector` loops become floatN where possible.
#pragma once
#include <deque>
#include <unordered_map>
#include <vector>

#include "backends/device/thread_form.h"
#include "backends/llvm/index.h"
#include "backends/opencl/opencl.h"
#include "backends/opencl/words.h"

namespace tw::opencl {

using codegen::IndexForm, codegen::IndexTerm, codegen::LoopDepths, codegen::offset_form;
using device::AxisPlace, device::LaunchPlan, device::Space, device::ThreadForm;

struct Text {
  std::string text;
  bool narrow = false;  // an i64 whose text is an int
  int lanes = 0;        // N in floatN or doubleN; 0: a scalar
  int depth = 0;        // rough depth of nesting
};

class Emitter {
 public:
  Emitter(const ThreadForm& thread, const LaunchPlan& plan, const Ranges& ranges);
  // Fills `launch` and returns the function's text.
  Expected<std::string> emit(const std::string& function, OpenClLaunch& launch);

 private:
  struct Scope {
    std::unordered_map<const ExprNode*, Text> known;
  };

  // emitter.cpp: the function, statements
  void declare_buffers();
  void declare_variables();
  void name_divisions();
  void emit_stmt(const Stmt& s);
  void emit_if(const stmt::If& guard);
  void emit_loop(const stmt::Loop& loop);
  // emit_store.cpp
  void emit_store(const stmt::Store& store);
  void emit_update(const stmt::Store& store, const Text& at);
  std::string first_reduce_iteration() const;
  Text combined(const stmt::Store& store, const Text& old);
  std::string pointer(BufferId id, const Text& at) const;
  Text element(BufferId id, const Text& at);
  void write(BufferId id, const Text& at, const Text& value);
  Text values_of(const Expr& e) { return lane_.empty() ? value(e) : splat(lanes_of(e), e.type()); }
  // emit_expr.cpp: scalars
  Text value(const Expr& e);
  Text node(const Expr& e);
  Text var_of(const expr::Var& var);
  Text unary_of(const Expr& e, const expr::Unary& unary);
  Text binary_of(const Expr& e, const expr::Binary& binary);
  Text integer_binary(const Expr& e, const expr::Binary& binary);
  Text float_binary(const expr::Binary& binary);
  Text divided(const expr::Binary& binary, const Text& a, const Text& b);
  Text select_of(const expr::Select& select);
  Text logical_of(const expr::Binary& binary);
  Text cast_of(const expr::Cast& cast, DType to);
  Text conditional(const std::string& type, const std::string& condition, const Expr& yes,
                   const Expr& no);
  Text read(BufferId id, const Text& at);
  std::string half_pointer(BufferId id) const;
  Text offset(BufferId id, const std::vector<Expr>& indices);
  bool fits_int(const Expr& e);
  bool complex(const Expr& e);
  void count(const Expr& e);
  // emit_lanes.cpp: lanes of a vector loop
  bool emit_vector(const stmt::Loop& loop);  // false: the loop has another form
  bool has_lanes(const Stmt& s, const std::string& var);
  Text lanes_node(const Expr& e);
  Text lanes_of(const Expr& e);
  Text each_lane(const Expr& e);
  Text splat(const Text& t, DType type) const;
  Text lanes_load(const Expr& e, const expr::Load& load);
  Text lanes_unary(const Expr& e, const expr::Unary& unary);
  Text lanes_binary(const Expr& e, const expr::Binary& binary);
  std::optional<int64_t> lane_stride(BufferId id, const std::vector<Expr>& indices,
                                     const std::string& var) const;

  void fail(const std::string& why) {
    if (problem_.empty()) problem_ = why;
  }
  void line(const std::string& text) {
    text_ += std::string(2 * static_cast<size_t>(indent_), ' ') + text + "\n";
  }
  void open(const std::string& text) {
    line(text + " {");
    ++indent_;
    scopes_.emplace_back();
  }
  void close() {
    --indent_;
    scopes_.pop_back();
    line("}");
  }
  // Declares a constant before the statement
  std::string named(const std::string& type, const Text& t);
  Space space(BufferId id) const { return plan_.spaces.at(id.index); }

  const ThreadForm& thread_;
  const Kernel& kernel_;
  const LaunchPlan& plan_;
  Ranges ranges_;
  WorkspaceLayout layout_;
  LoopDepths depths_;
  Names names_;
  std::string text_, problem_;
  int indent_ = 0;
  std::map<std::string, Text, std::less<>> vars_;
  std::map<int32_t, std::string> buffers_;
  std::vector<const stmt::Loop*> loops_;  // enclosing loops that are not expanded
  std::vector<Scope> scopes_;
  std::unordered_map<const ExprNode*, int> counts_;
  // Named quotients and remainders, by hash
  std::unordered_multimap<size_t, std::pair<Expr, Text>> divisions_;
  std::deque<Expr> kept_;  // expressions whose addresses are keys
  std::vector<Stmt> bodies_;
  int64_t statements_ = 0;
  // Number of enclosing expanded reduce loops that are past their first iteration
  int64_t later_reduce_ = 0;
  bool inline_ = false;  // inside a branch of an expression, where constants cannot be declared
  std::string lane_;     // variable of the enclosing vector loop
  int lane_count_ = 0;
};

}  // namespace tw::opencl
