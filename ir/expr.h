// Scalar expressions of the loop IR and of symbolic dimensions. They are immutable, so subtrees are
// shared.
//
// The text form of ir/text.h prints them: select(i < n, x[i + 1] * 2.0, 0.0).
//
// Semantics:
// * Integers wrap. `div` truncates for integers and is IEEE division for floats. floor_div and
//   floor_mod round to minus infinity.
// * max(a, b) is a > b ? a : b, and min(a, b) is a < b ? a : b. A NaN in b therefore comes through,
//   as in relu(x) = max(0, x).
// * round is half-to-even. Casts from float to integer truncate toward zero and turn NaN into 0.
//   With `saturate` they clamp to the type.
// * Comparisons and logical operators give bool. select evaluates the loads of the chosen side
//   only.
// * Variables are known by name. Names are unique in a kernel, which the verifier checks. Symbols
//   of dims are variables too.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "support/ids.h"
#include "support/variant.h"

namespace tw {

using BufferId = Id<struct BufferTag>;

enum class UnaryOp : uint8_t {
  neg,
  abs,
  exp,
  exp2,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  tanh,
  erf,
  normal_cdf,
  sigmoid,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  floor,
  ceil,
  round,
  trunc,
  tf32,  // rounds an f32 to 10 bits behind the leading one, halves away from zero
  sign,
  is_nan,
  is_inf,
  logical_not,
  bit_not
};
inline constexpr int kUnaryOpCount = 29;
enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,
  floor_div,
  floor_mod,
  mod,
  min,
  max,
  pow,
  lt,
  le,
  eq,
  ne,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr
};
inline constexpr int kBinaryOpCount = 22;
const char* op_name(UnaryOp op);  // the text form's word: "exp", "neg", …
const char* op_name(BinaryOp op);
bool is_comparison(BinaryOp op);  // lt le eq ne

struct ExprNode;

class Expr {
 public:
  Expr() = default;
  Expr(int64_t value);  // NOLINT: an i64 immediate, so that index arithmetic reads naturally
  Expr(int value) : Expr(int64_t{value}) {}
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  bool defined() const { return node_ != nullptr; }
  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* get() const { return node_.get(); }
  DType type() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

// Bounds of an i64 value that depends on data. A value made of sizes and loop variables alone has
// no DataRange: its arithmetic never leaves 64 bits. Arithmetic on data may, and wraps then.
struct DataRange {
  int64_t least = INT64_MIN, most = INT64_MAX;
};

namespace expr {

struct Int {  // bools too
  int64_t value = 0;
};
struct Float {
  double value = 0;
};
struct Var {
  std::string name;
};
struct Load {
  BufferId buffer;
  std::vector<Expr> indices;
};
struct Unary {
  UnaryOp op;
  Expr a;
};
struct Binary {
  BinaryOp op;
  Expr a, b;
};
struct Select {
  Expr condition, then, otherwise;
};
struct Cast {  // casts to the node's type
  Expr a;
  bool saturate = false;
};

using Any = std::variant<Int, Float, Var, Load, Unary, Binary, Select, Cast>;
template <class T>
concept Kind = kAlternative<T, Any>;

}  // namespace expr

struct ExprNode {
  expr::Any is;
  DType type = DType::i64;
  std::optional<DataRange> data{};  // set by the makers below
};

// The expression as kind T, or null: `if (const auto* load = as<expr::Load>(e))`.
template <expr::Kind T>
const T* as(const ExprNode& e) {
  return std::get_if<T>(&e.is);
}
template <expr::Kind T>
const T* as(const Expr& e) {
  return std::get_if<T>(&e->is);
}
template <expr::Kind... T>
bool is(const ExprNode& e) {
  return (std::holds_alternative<T>(e.is) || ...);
}
template <expr::Kind... T>
bool is(const Expr& e) {
  return is<T...>(*e);
}
const expr::Unary* as_unary(const Expr& e, UnaryOp op);
const expr::Binary* as_binary(const Expr& e, BinaryOp op);
bool is_var(const Expr& e, std::string_view name);
const std::string* var_name(const Expr& e);  // null: the expression is no variable

// Calls the function that takes the expression's kind. Each kind needs one; a generic function
// takes all others.
template <class... Functions>
decltype(auto) match(const ExprNode& e, Functions&&... functions) {
  return match_kind(e.is, std::forward<Functions>(functions)...);
}
template <class... Functions>
decltype(auto) match(const Expr& e, Functions&&... functions) {
  return match_kind(e->is, std::forward<Functions>(functions)...);
}

// The direct operands, in the order of the text. Immediates and variables have none.
template <class F>
void for_each_operand(const ExprNode& e, F&& fn) {
  match(
      e,
      [&](const expr::Load& load) {
        for (const Expr& index : load.indices) fn(index);
      },
      [&](const expr::Unary& unary) { fn(unary.a); },
      [&](const expr::Binary& binary) { fn(binary.a), fn(binary.b); },
      [&](const expr::Select& select) {
        fn(select.condition), fn(select.then), fn(select.otherwise);
      },
      [&](const expr::Cast& cast) { fn(cast.a); }, [](const auto&) {});
}
template <class Test>
bool any_operand(const ExprNode& e, Test&& test) {
  bool found = false;
  for_each_operand(e, [&](const Expr& operand) { found = found || test(operand); });
  return found;
}
// Rebuilds the expression over the operands that fn returns, and folds it. An undefined result
// keeps the operand. Returns the same object where no operand differs.
Expr with_operands(const Expr& e, const std::function<Expr(const Expr&)>& fn);

// The makers check operand types (TW_CHECK). They fold i64 constants and trivial identities (x+0,
// x*1, x*0).
Expr int_imm(int64_t value, DType type = DType::i64);
Expr float_imm(double value, DType type = DType::f32);
Expr bool_imm(bool value);
Expr imm(double value, DType type);
Expr var(std::string name, DType type = DType::i64);
Expr load(BufferId buffer, DType type, std::vector<Expr> indices);
Expr unary(UnaryOp op, Expr a);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr select(Expr condition, Expr then, Expr otherwise);
Expr cast(DType type, Expr a, bool saturate = false);

// The reason why the operator does not take operands of these types; null: it does
const char* operand_error(UnaryOp op, DType a);
const char* operand_error(BinaryOp op, DType a, DType b);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
inline Expr floor_div(Expr a, Expr b) {
  return binary(BinaryOp::floor_div, std::move(a), std::move(b));
}
inline Expr floor_mod(Expr a, Expr b) {
  return binary(BinaryOp::floor_mod, std::move(a), std::move(b));
}
inline Expr min(Expr a, Expr b) { return binary(BinaryOp::min, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return binary(BinaryOp::max, std::move(a), std::move(b)); }
inline Expr lt(Expr a, Expr b) { return binary(BinaryOp::lt, std::move(a), std::move(b)); }
inline Expr le(Expr a, Expr b) { return binary(BinaryOp::le, std::move(a), std::move(b)); }
inline Expr eq(Expr a, Expr b) { return binary(BinaryOp::eq, std::move(a), std::move(b)); }
Expr logical_and(Expr a, Expr b);  // an undefined operand is dropped
Expr ceil_div(const Expr& a, int64_t b);

bool equal(const Expr& a, const Expr& b);  // compares structure
bool is_const(const Expr& e, int64_t value);
std::optional<int64_t> as_const(const Expr& e);  // the value of an int immediate
size_t hash_value(const Expr& e);

// Rebuilds bottom-up. fn returns an undefined Expr to keep a (rebuilt) node.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn);
void visit(const Expr& e, const std::function<void(const Expr&)>& fn);  // every node, parents first
Expr substitute(const Expr& e, std::string_view var, const Expr& value);
bool uses_var(const Expr& e, std::string_view var);

// Evaluates an integer expression without loads. env gives the variables' values.
int64_t eval_int(const Expr& e, const std::function<int64_t(std::string_view)>& env);
// The value for costs, where sizes may be free: each symbol is 64, so that a picture which a
// network makes smaller by 32 keeps some points.
double nominal(const Expr& e);

// Infix text; the parser is in ir/text.h. buffer_name may be null only for expressions without
// loads.
std::string to_string(const Expr& e,
                      const std::function<std::string(BufferId)>& buffer_name = nullptr);

}  // namespace tw
