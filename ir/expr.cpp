// Makers with constant folding, walks and evaluation. The text form is in ir/text.cpp.
#include "ir/expr.h"

#include <algorithm>
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
bool int_or_bool(DType t) { return is_int(t) || t == DType::boolean; }

// Folds x op c and c op x for a constant c to x or to a constant; undefined: it is neither.
Expr fold_identity(BinaryOp op, const Expr& a, const Expr& b) {
  bool commutes = op == BinaryOp::add || op == BinaryOp::mul || op == BinaryOp::logical_and ||
                  op == BinaryOp::logical_or;
  const auto* left = as<expr::Int>(a);
  if (left && !commutes) return Expr();
  const auto* known = left ? left : as<expr::Int>(b);
  if (!known) return Expr();
  const int64_t c = known->value;
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
  if (const auto* number = as<expr::Float>(a); number && op == UnaryOp::neg)
    return float_imm(-number->value, a.type());
  const auto* known = as<expr::Int>(a);
  if (!known) return Expr();
  const int64_t v = known->value;
  uint64_t negated = -static_cast<uint64_t>(v);
  if (op == UnaryOp::neg) return int_imm(static_cast<int64_t>(negated), a.type());
  if (op == UnaryOp::abs)
    return int_imm(v < 0 && is_signed_int(a.type()) ? static_cast<int64_t>(negated) : v, a.type());
  if (op == UnaryOp::bit_not) return int_imm(~v, a.type());
  if (op == UnaryOp::logical_not) return bool_imm(v == 0);
  return Expr();
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

Expr int_imm(int64_t value, DType type) { return make({expr::Int{wrap_to(type, value)}, type}); }
Expr float_imm(double value, DType type) {
  double rounded = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                     : round_to(type, value);
  return make({expr::Float{rounded}, type});
}
Expr bool_imm(bool value) { return int_imm(value, DType::boolean); }
Expr imm(double value, DType type) {
  return is_float(type) ? float_imm(value, type) : int_imm(static_cast<int64_t>(value), type);
}
Expr var(std::string name, DType type) {
  TW_CHECK(!name.empty(), "a variable needs a name");
  return make({expr::Var{std::move(name)}, type});
}
Expr load(BufferId buffer, DType type, std::vector<Expr> indices) {
  TW_CHECK(buffer.valid(), "load of no buffer");
  return make({expr::Load{buffer, std::move(indices)}, type});
}

Expr unary(UnaryOp op, Expr a) {
  TW_CHECK(a.defined(), "{0} of nothing", op_name(op));
  if (const char* why = operand_error(op, a.type()))
    TW_UNREACHABLE("{0} of {1}: {2}", op_name(op), dtype_name(a.type()), why);
  DType type = op == UnaryOp::is_nan || op == UnaryOp::is_inf ? DType::boolean : a.type();
  if (Expr folded = fold_unary(op, a); folded.defined()) return folded;
  return make({expr::Unary{op, std::move(a)}, type});
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  TW_CHECK(a.defined() && b.defined(), "{0} of nothing", op_name(op));
  if (const char* why = operand_error(op, a.type(), b.type()))
    TW_UNREACHABLE("{0} of {1} and {2}: {3}", op_name(op), dtype_name(a.type()),
                   dtype_name(b.type()), why);
  DType type = is_comparison(op) ? DType::boolean : a.type();
  if (int_or_bool(a.type())) {
    const auto *x = as<expr::Int>(a), *y = as<expr::Int>(b);
    if (x && y && !(divides(op) && y->value == 0))
      return int_imm(int_binary(op, a.type(), x->value, y->value), type);
    if (Expr folded = fold_identity(op, a, b); folded.defined()) return folded;
  }
  return make({expr::Binary{op, std::move(a), std::move(b)}, type});
}

Expr select(Expr condition, Expr then, Expr otherwise) {
  TW_CHECK(condition.defined() && then.defined() && otherwise.defined(), "select of nothing");
  TW_CHECK(condition.type() == DType::boolean, "select on {0}", dtype_name(condition.type()));
  TW_CHECK(then.type() == otherwise.type(), "select of {0} and {1}", dtype_name(then.type()),
           dtype_name(otherwise.type()));
  if (const auto known = as_const(condition)) return *known ? then : otherwise;
  DType type = then.type();
  return make({expr::Select{std::move(condition), std::move(then), std::move(otherwise)}, type});
}

Expr cast(DType type, Expr a, bool saturate) {
  TW_CHECK(a.defined(), "cast of nothing");
  if (a.type() == type) return a;
  // Casts between other types cannot saturate.
  bool narrowed = saturate && (is_int(type) || is_small_float(type));
  const auto* integer = as<expr::Int>(a);
  if (integer && !is_float(type))
    return int_imm(cast_int(type, a.type(), integer->value, saturate), type);
  if (integer && a.type() != DType::u64)
    return float_imm(round_to(type, static_cast<double>(integer->value), narrowed), type);
  if (const auto* number = as<expr::Float>(a); number && is_float(type))
    return float_imm(round_to(type, number->value, narrowed), type);
  return make({expr::Cast{std::move(a), narrowed}, type});
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

namespace {

// The parts of a node beside its operands: a number for each kind, op, value and name
struct Own {
  uint64_t number = 0, other = 0;
  std::string_view name{};
  bool operator==(const Own&) const = default;
};
Own own(const ExprNode& e) {
  return match(
      e, [](const expr::Int& i) { return Own{static_cast<uint64_t>(i.value)}; },
      [](const expr::Float& f) { return Own{std::bit_cast<uint64_t>(f.value)}; },
      [](const expr::Var& v) { return Own{0, 0, v.name}; },
      [](const expr::Load& l) {
        return Own{static_cast<uint64_t>(l.buffer.index), l.indices.size()};
      },
      [](const expr::Unary& u) { return Own{static_cast<uint64_t>(u.op)}; },
      [](const expr::Binary& b) { return Own{static_cast<uint64_t>(b.op)}; },
      [](const expr::Select&) { return Own{}; },
      [](const expr::Cast& c) { return Own{c.saturate ? 1u : 0u}; });
}

bool equal_operands(const expr::Load& x, const expr::Load& y) {
  return std::ranges::equal(x.indices, y.indices, equal);
}
bool equal_operands(const expr::Unary& x, const expr::Unary& y) { return equal(x.a, y.a); }
bool equal_operands(const expr::Binary& x, const expr::Binary& y) {
  return equal(x.a, y.a) && equal(x.b, y.b);
}
bool equal_operands(const expr::Select& x, const expr::Select& y) {
  return equal(x.condition, y.condition) && equal(x.then, y.then) &&
         equal(x.otherwise, y.otherwise);
}
bool equal_operands(const expr::Cast& x, const expr::Cast& y) { return equal(x.a, y.a); }
template <class Leaf>
bool equal_operands(const Leaf&, const Leaf&) {
  return true;
}

}  // namespace

bool equal(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (!a.defined() || !b.defined()) return false;
  if (a->is.index() != b->is.index() || a->type != b->type || own(*a) != own(*b)) return false;
  return match(a,
               [&](const auto& x) { return equal_operands(x, *as<std::decay_t<decltype(x)>>(b)); });
}

bool is_const(const Expr& e, int64_t value) { return as_const(e) == value; }
std::optional<int64_t> as_const(const Expr& e) {
  const auto* known = e.defined() ? as<expr::Int>(e) : nullptr;
  return known ? std::optional(known->value) : std::nullopt;
}

const expr::Unary* as_unary(const Expr& e, UnaryOp op) {
  const auto* unary = as<expr::Unary>(e);
  return unary && unary->op == op ? unary : nullptr;
}
const expr::Binary* as_binary(const Expr& e, BinaryOp op) {
  const auto* binary = as<expr::Binary>(e);
  return binary && binary->op == op ? binary : nullptr;
}
const std::string* var_name(const Expr& e) {
  const auto* variable = as<expr::Var>(e);
  return variable ? &variable->name : nullptr;
}
bool is_var(const Expr& e, std::string_view name) {
  const std::string* own = var_name(e);
  return own && *own == name;
}

size_t hash_value(const Expr& e) {
  if (!e.defined()) return 0;
  uint64_t h = 0xcbf29ce484222325;
  auto mix = [&h](uint64_t v) {
    h = (h ^ v) * 0x100000001b3;
    h ^= h >> 29;
  };
  const Own self = own(*e);
  mix(e->is.index());
  mix(static_cast<uint64_t>(e->type));
  mix(self.number);
  mix(self.other);
  for (char c : self.name) mix(static_cast<unsigned char>(c));
  for_each_operand(*e, [&](const Expr& operand) { mix(hash_value(operand)); });
  return h;
}

Expr with_operands(const Expr& e, const std::function<Expr(const Expr&)>& fn) {
  bool changed = false;
  const auto of = [&](const Expr& operand) {
    Expr made = fn(operand);
    if (!made.defined()) return operand;
    changed |= made.get() != operand.get();
    return made;
  };
  return match(
      e,
      [&](const expr::Load& l) {
        std::vector<Expr> indices;
        indices.reserve(l.indices.size());
        for (const Expr& index : l.indices) indices.push_back(of(index));
        return changed ? load(l.buffer, e->type, std::move(indices)) : e;
      },
      [&](const expr::Unary& u) {
        Expr a = of(u.a);
        return changed ? unary(u.op, std::move(a)) : e;
      },
      [&](const expr::Binary& b) {
        Expr left = of(b.a), right = of(b.b);
        return changed ? binary(b.op, std::move(left), std::move(right)) : e;
      },
      [&](const expr::Select& s) {
        Expr condition = of(s.condition), then = of(s.then), otherwise = of(s.otherwise);
        return changed ? select(std::move(condition), std::move(then), std::move(otherwise)) : e;
      },
      [&](const expr::Cast& c) {
        Expr a = of(c.a);
        return changed ? cast(e->type, std::move(a), c.saturate) : e;
      },
      [&](const auto&) { return e; });
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn) {
  if (!e.defined()) return e;
  Expr rebuilt = with_operands(e, [&](const Expr& operand) { return rewrite(operand, fn); });
  Expr replaced = fn(rebuilt);
  return replaced.defined() ? replaced : rebuilt;
}

void visit(const Expr& e, const std::function<void(const Expr&)>& fn) {
  if (!e.defined()) return;
  fn(e);
  for_each_operand(*e, [&](const Expr& operand) { visit(operand, fn); });
}

Expr substitute(const Expr& e, std::string_view var, const Expr& value) {
  return rewrite(e, [&](const Expr& node) { return is_var(node, var) ? value : Expr(); });
}

bool uses_var(const Expr& e, std::string_view var) {
  if (!e.defined()) return false;
  return is_var(e, var) ||
         any_operand(*e, [&](const Expr& operand) { return uses_var(operand, var); });
}

int64_t eval_int(const Expr& e, const std::function<int64_t(std::string_view)>& env) {
  const auto no_integer = [&]() -> int64_t {
    TW_UNREACHABLE("not an integer expression: {0}",
                   to_string(e, [](BufferId) { return "buffer"; }));
  };
  return match(
      e, [](const expr::Int& i) { return i.value; },
      [&](const expr::Var& v) { return wrap_to(e->type, env(v.name)); },
      [&](const expr::Unary& u) {
        const auto folded = as_const(fold_unary(u.op, int_imm(eval_int(u.a, env), u.a.type())));
        TW_CHECK(folded, "{0} in an integer expression", op_name(u.op));
        return *folded;
      },
      [&](const expr::Binary& b) -> int64_t {
        const int64_t a = eval_int(b.a, env);
        if (b.op == BinaryOp::logical_and && !a) return 0;
        if (b.op == BinaryOp::logical_or && a) return 1;
        return int_binary(b.op, b.a.type(), a, eval_int(b.b, env));
      },
      [&](const expr::Select& s) {
        return eval_int(eval_int(s.condition, env) ? s.then : s.otherwise, env);
      },
      [&](const expr::Cast& c) {
        return cast_int(e->type, c.a.type(), eval_int(c.a, env), c.saturate);
      },
      [&](const expr::Float&) { return no_integer(); },
      [&](const expr::Load&) { return no_integer(); });
}

double nominal(const Expr& e) {
  return static_cast<double>(eval_int(e, [](std::string_view) { return int64_t{64}; }));
}

}  // namespace tw
