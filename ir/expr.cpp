// Makers with constant folding, walks and evaluation. The text form is in ir/text.cpp.
#include "ir/expr.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/data_range.h"
#include "ir/scalar_ops.h"
#include "ir/storage_types.h"
#include "support/diag.h"
#include "support/enum_words.h"

namespace tw {

static constexpr const char* word(UnaryOp value) {
  switch (value) {
    case UnaryOp::neg: return "neg";
    case UnaryOp::abs: return "abs";
    case UnaryOp::exp: return "exp";
    case UnaryOp::exp2: return "exp2";
    case UnaryOp::expm1: return "expm1";
    case UnaryOp::log: return "log";
    case UnaryOp::log1p: return "log1p";
    case UnaryOp::sqrt: return "sqrt";
    case UnaryOp::rsqrt: return "rsqrt";
    case UnaryOp::tanh: return "tanh";
    case UnaryOp::erf: return "erf";
    case UnaryOp::normal_cdf: return "normal_cdf";
    case UnaryOp::sigmoid: return "sigmoid";
    case UnaryOp::sin: return "sin";
    case UnaryOp::cos: return "cos";
    case UnaryOp::tan: return "tan";
    case UnaryOp::asin: return "asin";
    case UnaryOp::acos: return "acos";
    case UnaryOp::atan: return "atan";
    case UnaryOp::floor: return "floor";
    case UnaryOp::ceil: return "ceil";
    case UnaryOp::round: return "round";
    case UnaryOp::trunc: return "trunc";
    case UnaryOp::tf32: return "tf32";
    case UnaryOp::sign: return "sign";
    case UnaryOp::is_nan: return "is_nan";
    case UnaryOp::is_inf: return "is_inf";
    case UnaryOp::logical_not: return "logical_not";
    case UnaryOp::bit_not: return "bit_not";
  }
  return nullptr;
}
static_assert(enum_count<UnaryOp>() == kUnaryOpCount);

static constexpr const char* word(BinaryOp value) {
  switch (value) {
    case BinaryOp::add: return "add";
    case BinaryOp::sub: return "sub";
    case BinaryOp::mul: return "mul";
    case BinaryOp::div: return "div";
    case BinaryOp::floor_div: return "floor_div";
    case BinaryOp::floor_mod: return "floor_mod";
    case BinaryOp::mod: return "mod";
    case BinaryOp::min: return "min";
    case BinaryOp::max: return "max";
    case BinaryOp::pow: return "pow";
    case BinaryOp::lt: return "lt";
    case BinaryOp::le: return "le";
    case BinaryOp::eq: return "eq";
    case BinaryOp::ne: return "ne";
    case BinaryOp::logical_and: return "logical_and";
    case BinaryOp::logical_or: return "logical_or";
    case BinaryOp::logical_xor: return "logical_xor";
    case BinaryOp::bit_and: return "bit_and";
    case BinaryOp::bit_or: return "bit_or";
    case BinaryOp::bit_xor: return "bit_xor";
    case BinaryOp::shl: return "shl";
    case BinaryOp::shr: return "shr";
  }
  return nullptr;
}
static_assert(enum_count<BinaryOp>() == kBinaryOpCount);

namespace {

Expr make(ExprNode node) {
  node.data = data_range(node);
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

bool is_logical(BinaryOp op) {
  return op == BinaryOp::logical_and || op == BinaryOp::logical_or || op == BinaryOp::logical_xor;
}
bool is_bitwise(BinaryOp op) { return op >= BinaryOp::bit_and && op <= BinaryOp::shr; }
bool is_int_imm(const Expr& e) { return e->kind == ExprKind::int_imm; }
bool int_or_bool(DType t) { return is_int(t) || t == DType::boolean; }

// x op c and c op x for a constant c where the result is x or a constant; undefined otherwise.
Expr fold_identity(BinaryOp op, const Expr& a, const Expr& b) {
  bool commutes = op == BinaryOp::add || op == BinaryOp::mul || op == BinaryOp::logical_and ||
                  op == BinaryOp::logical_or;
  bool left = is_int_imm(a);
  if (left && !commutes) return Expr();
  if (!left && !is_int_imm(b)) return Expr();
  int64_t c = left ? a->int_value : b->int_value;
  const Expr &x = left ? b : a, &constant = left ? a : b;
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub: return c == 0 ? x : Expr();
    case BinaryOp::mul: return c == 1 ? x : c == 0 ? constant : Expr();
    case BinaryOp::div:
    case BinaryOp::floor_div: return c == 1 ? x : Expr();
    case BinaryOp::mod:
    case BinaryOp::floor_mod: return c == 1 ? int_imm(0, x.type()) : Expr();
    case BinaryOp::logical_and: return c ? x : constant;
    case BinaryOp::logical_or: return c ? constant : x;
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::pow:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return Expr();
  }
  TW_UNREACHABLE("bad binary operator");
}

Expr fold_unary(UnaryOp op, const Expr& a) {
  if (a->kind == ExprKind::float_imm && op == UnaryOp::neg)
    return float_imm(-a->float_value, a.type());
  if (!is_int_imm(a)) return Expr();
  int64_t v = a->int_value;
  uint64_t negated = -static_cast<uint64_t>(v);
  if (op == UnaryOp::neg) return int_imm(static_cast<int64_t>(negated), a.type());
  if (op == UnaryOp::abs)
    return int_imm(v < 0 && is_signed_int(a.type()) ? static_cast<int64_t>(negated) : v, a.type());
  if (op == UnaryOp::bit_not) return int_imm(~v, a.type());
  if (op == UnaryOp::logical_not) return bool_imm(v == 0);
  return Expr();
}

Expr with_args(const ExprNode& node, std::vector<Expr> args) {
  switch (node.kind) {
    case ExprKind::load: return load(node.buffer, node.type, std::move(args));
    case ExprKind::unary: return unary(node.unary, args[0]);
    case ExprKind::binary: return binary(node.binary, args[0], args[1]);
    case ExprKind::select: return select(args[0], args[1], args[2]);
    case ExprKind::cast: return cast(node.type, args[0], node.saturate);
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::var: break;
  }
  TW_UNREACHABLE("a leaf has no operands");
}

}  // namespace

const char* op_name(UnaryOp op) { return word(op); }
const char* op_name(BinaryOp op) { return word(op); }
bool is_comparison(BinaryOp op) { return op >= BinaryOp::lt && op <= BinaryOp::ne; }

const char* operand_error(UnaryOp op, DType a) {
  if (is_storage_only(a)) return "the operand must be cast to a type of arithmetic";
  if (op == UnaryOp::logical_not) return a == DType::boolean ? nullptr : "the operand must be bool";
  if (op == UnaryOp::bit_not) return is_int(a) ? nullptr : "the operand must be an integer";
  if (op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::sign)
    return a == DType::boolean ? "the operand must be a number" : nullptr;
  if (op == UnaryOp::tf32) return a == DType::f32 ? nullptr : "the operand must be f32";
  return is_float(a) ? nullptr : "the operand must be a float";
}

const char* operand_error(BinaryOp op, DType a, DType b) {
  if (a != b) return "the operands differ in type";
  if (is_storage_only(a)) return "the operands must be cast to a type of arithmetic";
  if (is_logical(op)) return a == DType::boolean ? nullptr : "the operands must be bool";
  if (is_bitwise(op)) return is_int(a) ? nullptr : "the operands must be integers";
  if (a == DType::boolean && op != BinaryOp::eq && op != BinaryOp::ne)
    return "the operands must be numbers";
  return nullptr;
}

Expr::Expr(int64_t value) : Expr(int_imm(value)) {}
DType Expr::type() const { return node_->type; }

Expr int_imm(int64_t value, DType type) {
  return make({.kind = ExprKind::int_imm, .type = type, .int_value = wrap_to(type, value)});
}
Expr float_imm(double value, DType type) {
  double rounded = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                     : round_to(type, value);
  return make({.kind = ExprKind::float_imm, .type = type, .float_value = rounded});
}
Expr bool_imm(bool value) { return int_imm(value, DType::boolean); }
Expr imm(double value, DType type) {
  return is_float(type) ? float_imm(value, type) : int_imm(static_cast<int64_t>(value), type);
}
Expr var(std::string name, DType type) {
  TW_CHECK(!name.empty(), "a variable needs a name");
  return make({.kind = ExprKind::var, .type = type, .name = std::move(name)});
}
Expr load(BufferId buffer, DType type, std::vector<Expr> indices) {
  TW_CHECK(buffer.valid(), "load of no buffer");
  return make({.kind = ExprKind::load, .type = type, .buffer = buffer, .args = std::move(indices)});
}

Expr unary(UnaryOp op, Expr a) {
  TW_CHECK(a.defined(), "{0} of nothing", op_name(op));
  if (const char* why = operand_error(op, a.type()))
    TW_UNREACHABLE("{0} of {1}: {2}", op_name(op), dtype_name(a.type()), why);
  DType type = op == UnaryOp::is_nan || op == UnaryOp::is_inf ? DType::boolean : a.type();
  if (Expr folded = fold_unary(op, a); folded.defined()) return folded;
  return make({.kind = ExprKind::unary, .type = type, .unary = op, .args = {std::move(a)}});
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  TW_CHECK(a.defined() && b.defined(), "{0} of nothing", op_name(op));
  if (const char* why = operand_error(op, a.type(), b.type()))
    TW_UNREACHABLE("{0} of {1} and {2}: {3}", op_name(op), dtype_name(a.type()),
                   dtype_name(b.type()), why);
  DType type = is_comparison(op) ? DType::boolean : a.type();
  if (int_or_bool(a.type())) {
    if (is_int_imm(a) && is_int_imm(b) && !(divides(op) && b->int_value == 0))
      return int_imm(int_binary(op, a.type(), a->int_value, b->int_value), type);
    if (Expr folded = fold_identity(op, a, b); folded.defined()) return folded;
  }
  return make(
      {.kind = ExprKind::binary, .type = type, .binary = op, .args = {std::move(a), std::move(b)}});
}

Expr select(Expr condition, Expr then, Expr otherwise) {
  TW_CHECK(condition.defined() && then.defined() && otherwise.defined(), "select of nothing");
  TW_CHECK(condition.type() == DType::boolean, "select on {0}", dtype_name(condition.type()));
  TW_CHECK(then.type() == otherwise.type(), "select of {0} and {1}", dtype_name(then.type()),
           dtype_name(otherwise.type()));
  if (is_int_imm(condition)) return condition->int_value ? then : otherwise;
  DType type = then.type();
  return make({.kind = ExprKind::select,
               .type = type,
               .args = {std::move(condition), std::move(then), std::move(otherwise)}});
}

Expr cast(DType type, Expr a, bool saturate) {
  TW_CHECK(a.defined(), "cast of nothing");
  if (a.type() == type) return a;
  // Other floats cannot saturate
  bool narrowed = saturate && (is_int(type) || is_small_float(type));
  if (is_int_imm(a) && !is_float(type))
    return int_imm(cast_int(type, a.type(), a->int_value, saturate), type);
  if (is_int_imm(a) && a.type() != DType::u64)
    return float_imm(round_to(type, static_cast<double>(a->int_value), narrowed), type);
  if (a->kind == ExprKind::float_imm && is_float(type))
    return float_imm(round_to(type, a->float_value, narrowed), type);
  return make({.kind = ExprKind::cast, .type = type, .saturate = narrowed, .args = {std::move(a)}});
}

Expr operator+(const Expr& a, const Expr& b) { return binary(BinaryOp::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(BinaryOp::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return binary(BinaryOp::mul, a, b); }
Expr operator-(const Expr& a) { return unary(UnaryOp::neg, a); }
Expr logical_and(Expr a, Expr b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return binary(BinaryOp::logical_and, std::move(a), std::move(b));
}
Expr ceil_div(const Expr& a, int64_t b) { return floor_div(a + (b - 1), b); }

bool equal(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (!a.defined() || !b.defined()) return false;
  const ExprNode &x = *a, &y = *b;
  if (x.kind != y.kind || x.type != y.type || x.args.size() != y.args.size()) return false;
  if (x.int_value != y.int_value || x.name != y.name || x.buffer != y.buffer ||
      x.unary != y.unary || x.binary != y.binary || x.saturate != y.saturate ||
      std::bit_cast<uint64_t>(x.float_value) != std::bit_cast<uint64_t>(y.float_value))
    return false;
  for (size_t i = 0; i < x.args.size(); ++i)
    if (!equal(x.args[i], y.args[i])) return false;
  return true;
}

bool is_const(const Expr& e, int64_t value) {
  return e.defined() && is_int_imm(e) && e->int_value == value;
}
std::optional<int64_t> as_const(const Expr& e) {
  if (e.defined() && is_int_imm(e)) return e->int_value;
  return std::nullopt;
}

size_t hash_value(const Expr& e) {
  if (!e.defined()) return 0;
  uint64_t h = 0xcbf29ce484222325;
  auto mix = [&h](uint64_t v) {
    h = (h ^ v) * 0x100000001b3;
    h ^= h >> 29;
  };
  mix(static_cast<uint64_t>(e->kind));
  mix(static_cast<uint64_t>(e->type));
  mix(static_cast<uint64_t>(e->int_value));
  mix(std::bit_cast<uint64_t>(e->float_value));
  for (char c : e->name) mix(static_cast<unsigned char>(c));
  mix(static_cast<uint64_t>(e->buffer.index));
  mix(static_cast<uint64_t>(e->unary) << 16 | static_cast<uint64_t>(e->binary) << 8 | e->saturate);
  for (const Expr& arg : e->args) mix(hash_value(arg));
  return h;
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn) {
  if (!e.defined()) return e;
  Expr rebuilt = e;
  std::vector<Expr> args;
  for (size_t i = 0; i < e->args.size(); ++i) {
    Expr arg = rewrite(e->args[i], fn);
    if (args.empty() && arg.get() == e->args[i].get()) continue;
    if (args.empty()) args = e->args;
    args[i] = std::move(arg);
  }
  if (!args.empty()) rebuilt = with_args(*e, std::move(args));
  Expr replaced = fn(rebuilt);
  return replaced.defined() ? replaced : rebuilt;
}

void visit(const Expr& e, const std::function<void(const Expr&)>& fn) {
  if (!e.defined()) return;
  fn(e);
  for (const Expr& arg : e->args) visit(arg, fn);
}

Expr substitute(const Expr& e, std::string_view var, const Expr& value) {
  return rewrite(e, [&](const Expr& node) {
    return node->kind == ExprKind::var && node->name == var ? value : Expr();
  });
}

bool uses_var(const Expr& e, std::string_view var) {
  if (!e.defined()) return false;
  if (e->kind == ExprKind::var) return e->name == var;
  for (const Expr& arg : e->args)
    if (uses_var(arg, var)) return true;
  return false;
}

int64_t eval_int(const Expr& e, const std::function<int64_t(std::string_view)>& env) {
  switch (e->kind) {
    case ExprKind::int_imm: return e->int_value;
    case ExprKind::var: return wrap_to(e->type, env(e->name));
    case ExprKind::unary: {
      Expr folded = fold_unary(e->unary, int_imm(eval_int(e->args[0], env), e->args[0].type()));
      TW_CHECK(folded.defined(), "{0} in an integer expression", op_name(e->unary));
      return folded->int_value;
    }
    case ExprKind::binary: {
      int64_t a = eval_int(e->args[0], env);
      if (e->binary == BinaryOp::logical_and && !a) return 0;
      if (e->binary == BinaryOp::logical_or && a) return 1;
      return int_binary(e->binary, e->args[0].type(), a, eval_int(e->args[1], env));
    }
    case ExprKind::select: return eval_int(e->args[eval_int(e->args[0], env) ? 1 : 2], env);
    case ExprKind::cast:
      return cast_int(e->type, e->args[0].type(), eval_int(e->args[0], env), e->saturate);
    case ExprKind::float_imm:
    case ExprKind::load: break;
  }
  TW_UNREACHABLE("not an integer expression: {0}", to_string(e, [](BufferId) { return "buffer"; }));
}

}  // namespace tw
