// Scalar expressions of the loop IR and of symbolic dimensions: immutable, shared, one node type.
// Semantics:
//  * Integers wrap. `div` truncates for integers and is IEEE for floats; floor_div/floor_mod round
//  to minus infinity.
//  * max(a,b) is a > b ? a : b and min(a,b) is a < b ? a : b, so a NaN in b comes through (relu(x)
//  = max(0, x)).
//  * round is half-to-even; casts float -> int truncate toward zero, saturating (NaN -> 0) when
//  `saturate` is set.
//  * Comparisons and logical operators give bool. select evaluates only the chosen side's loads.
//  * Variables are known by name; names are unique in a kernel (the verifier checks), symbols of
//  dims are variables too.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "support/ids.h"

namespace tw {

using BufferId = Id<struct BufferTag>;

enum class ExprKind : uint8_t { int_imm, float_imm, var, load, unary, binary, select, cast };

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
const char* op_name(UnaryOp op);   // the word of the text form: "exp", "neg", …
const char* op_name(BinaryOp op);  // "add", "floor_div", …
bool is_comparison(BinaryOp op);   // lt le eq ne

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

// Numbers between which data lie that an i64 value is made from. Values of sizes and loop variables
// alone have none: their arithmetic never leaves 64 bits. Of data it may, and wraps then.
struct DataRange {
  int64_t least = INT64_MIN, most = INT64_MAX;
};

struct ExprNode {
  ExprKind kind;
  DType type = DType::i64;
  int64_t int_value = 0;   // int_imm (bool immediates too)
  double float_value = 0;  // float_imm
  std::string name{};      // var
  BufferId buffer{};       // load
  UnaryOp unary{};         // unary
  BinaryOp binary{};       // binary
  bool saturate = false;   // cast
  // load: indices; unary 1; binary 2; select: condition, then, else; cast 1
  std::vector<Expr> args{};
  std::optional<DataRange> data{};  // the makers set it
};

// Makers check operand types (TW_CHECK) and fold constants of i64 arithmetic and trivial identities
// (x+0, x*1, x*0).
Expr int_imm(int64_t value, DType type = DType::i64);
Expr float_imm(double value, DType type = DType::f32);
Expr bool_imm(bool value);
Expr imm(double value, DType type);  // of any type
Expr var(std::string name, DType type = DType::i64);
Expr load(BufferId buffer, DType type, std::vector<Expr> indices);
Expr unary(UnaryOp op, Expr a);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr select(Expr condition, Expr then, Expr otherwise);
Expr cast(DType type, Expr a, bool saturate = false);

// Why the operator does not take operands of these types; null when it does.
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
Expr logical_and(Expr a, Expr b);  // either may be undefined: then the other
Expr ceil_div(const Expr& a, int64_t b);

bool equal(const Expr& a, const Expr& b);  // structural
bool is_const(const Expr& e, int64_t value);
std::optional<int64_t> as_const(const Expr& e);  // of int immediates
size_t hash_value(const Expr& e);

// Rebuilds bottom-up; fn returns an undefined Expr to keep a (rebuilt) node.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn);
void visit(const Expr& e, const std::function<void(const Expr&)>& fn);  // every node, parents first
Expr substitute(const Expr& e, std::string_view var, const Expr& value);
bool uses_var(const Expr& e, std::string_view var);

// Evaluates an integer expression without loads; env gives the variables' values.
int64_t eval_int(const Expr& e, const std::function<int64_t(std::string_view)>& env);

// Infix text; loads need names, so buffer_name may be null only for expressions without loads. The
// parser is in ir/text.h.
std::string to_string(const Expr& e,
                      const std::function<std::string(BufferId)>& buffer_name = nullptr);

}  // namespace tw
