// Scalar expressions. Values of type i64 are computed as int if all parts fit, because index
// arithmetic of 64 bits is slow on most devices.
#include <algorithm>
#include <cmath>

#include "backends/opencl/emitter.h"
#include "ir/schedule/nest.h"

namespace tw::opencl {
namespace {

constexpr int kMaxDepth = 24;  // deepest nesting of operations in one expression's text

bool is_leaf(const Expr& e) { return is<expr::Var, expr::Int, expr::Float>(e); }

std::string widened(const Text& t) {
  if (!t.narrow) return t.text;
  const bool digits = t.text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? t.text + "L" : "(long)" + t.text;
}

}  // namespace

// Counts the uses of the value's nodes; each node's operands count once.
void Emitter::count(const Expr& e) {
  if (++counts_[e.get()] > 1 || is<expr::Load>(e)) return;
  for_each_operand(*e, [&](const Expr& operand) { count(operand); });
}

bool Emitter::fits_int(const Expr& e) {
  const Bounds bounds = constant_bounds(e, ranges_);
  return bounds.min && bounds.max && *bounds.min >= -INT32_MAX && *bounds.max <= INT32_MAX;
}

std::string Emitter::named(const std::string& type, const Text& t) {
  const std::string name = names_.fresh("t");
  line("const " + type + " " + name + " = " + t.text + ";");
  return name;
}

// True if its text would repeat work or nest too deeply, so that it needs constants of its own.
bool Emitter::complex(const Expr& e) {
  bool found = false;
  std::function<int(const Expr&)> depth = [&](const Expr& n) -> int {
    for (const Scope& scope : scopes_)
      if (scope.known.contains(n.get())) return 0;
    const auto uses = counts_.find(n.get());
    if (!is_leaf(n) && uses != counts_.end() && uses->second > 1) found = true;
    int deepest = 0;
    if (!found && !is<expr::Load>(n))
      for_each_operand(*n,
                       [&](const Expr& operand) { deepest = std::max(deepest, depth(operand)); });
    return deepest + 1;
  };
  return depth(e) > kMaxDepth || found;
}

Text Emitter::value(const Expr& e) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto known = scope->known.find(e.get()); known != scope->known.end())
      return known->second;
  if (!divisions_.empty() &&
      (as_binary(e, BinaryOp::floor_div) || as_binary(e, BinaryOp::floor_mod))) {
    const auto [first, last] = divisions_.equal_range(hash_value(e));
    for (auto at = first; at != last; ++at)
      if (equal(at->second.first, e)) return at->second.second;
  }
  Text t = node(e);
  const auto uses = counts_.find(e.get());
  const bool shared = uses != counts_.end() && uses->second > 1;
  if (inline_ || is_leaf(e) || (!shared && t.depth <= kMaxDepth) || scopes_.empty()) return t;
  t = {named(t.narrow ? "int" : value_type(e.type()), t), t.narrow};
  if (uses != counts_.end()) scopes_.back().known[e.get()] = t;
  return t;
}

Text Emitter::node(const Expr& e) {
  return match(
      e,
      [&](const expr::Int& number) {
        if (e.type() == DType::i64 && std::abs(number.value) <= INT32_MAX)
          return Text{literal(number.value, DType::i32), true};
        return Text{literal(number.value, e.type())};
      },
      [&](const expr::Float& number) { return Text{literal(number.value, e.type())}; },
      [&](const expr::Var& var) { return var_of(var); },
      [&](const expr::Load& load) { return read(load.buffer, offset(load.buffer, load.indices)); },
      [&](const expr::Unary& unary) { return unary_of(e, unary); },
      [&](const expr::Binary& binary) { return binary_of(e, binary); },
      [&](const expr::Select& select) { return select_of(select); },
      [&](const expr::Cast& cast) { return cast_of(cast, e.type()); });
}

Text Emitter::var_of(const expr::Var& var) {
  const auto found = vars_.find(var.name);
  if (found != vars_.end()) return found->second;
  fail("variable '" + var.name + "' is not known here");
  return {"0", true};
}

// The distance in elements from the buffer's start, row-major
Text Emitter::offset(BufferId id, const std::vector<Expr>& indices) {
  const IndexForm form = offset_form(kernel_.buffer(id), indices, depths_);
  const Expr sum = form.constant;
  Expr all;
  for (const IndexTerm& term : form.terms) {
    Expr product = term.factors[0];
    for (size_t i = 1; i < term.factors.size(); ++i) product = product * term.factors[i];
    product = product * Expr(term.coefficient);
    all = all.defined() ? all + product : product;
  }
  kept_.push_back(all.defined() ? all + sum : sum);
  Text at = value(kept_.back());
  at.text = bare(at.text);
  return at;
}

// f16 lies in memory as ushort, because half is no type of its own without cl_khr_fp16.
std::string Emitter::half_pointer(BufferId id) const {
  const Space place = space(id);
  const bool global = place == Space::parameter || place == Space::workspace;
  const bool constant = kernel_.buffer(id).role == BufferRole::input ||
                        kernel_.buffer(id).role == BufferRole::constant;
  return std::string("(") +
         (global                   ? "__global"
          : place == Space::shared ? "__local"
                                   : "__private") +
         (constant ? " const" : "") + " half*)" + buffers_.at(id.index);
}

Text Emitter::read(BufferId id, const Text& at) {
  const Buffer& buffer = kernel_.buffer(id);
  const std::string& name = buffers_.at(id.index);
  const std::string element = name + "[" + at.text + "]";
  if (buffer.dtype == DType::f16) return {"vload_half(" + at.text + ", " + half_pointer(id) + ")"};
  if (buffer.dtype == DType::bf16) return {"tw_from_bfloat16(" + element + ")"};
  if (buffer.dtype == DType::boolean) return {"(" + element + " != 0)"};
  return {element};
}

Text Emitter::unary_of(const Expr& e, const expr::Unary& unary) {
  const DType t = unary.a.type();
  const Text a = value(unary.a);
  const int depth = a.depth + 1;
  const std::string type = value_type(t), call = "(" + a.text + ")";
  const bool real = is_float(t);
  switch (unary.op) {
    case UnaryOp::neg:
      if (real || (t == DType::i64 && !e->data))
        return {"(-" + a.text + ")", a.narrow && fits_int(e), 0, depth};
      return {"((" + type + ")(0 - (" + unsigned_type(t) + ")" + a.text + "))", false, 0, depth};
    case UnaryOp::abs:
      if (real) return {"fabs" + call, false, 0, depth};
      return is_signed_int(t)
                 ? Text{"((" + type + ")abs((" + type + ")" + a.text + "))", false, 0, depth}
                 : a;
    case UnaryOp::sign: return {"tw_sign_" + type + call, false, 0, depth};
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc: return real ? Text{op_name(unary.op) + call, false, 0, depth} : a;
    case UnaryOp::tf32: return {"tw_round_tf32" + call, false, 0, depth};
    case UnaryOp::round: return real ? Text{"rint" + call, false, 0, depth} : a;
    case UnaryOp::is_nan: return {"(isnan" + call + " != 0)", false, 0, depth};
    case UnaryOp::is_inf: return {"(isinf" + call + " != 0)", false, 0, depth};
    case UnaryOp::logical_not: return {"(!" + a.text + ")", false, 0, depth};
    case UnaryOp::bit_not: return {"((" + type + ")~" + widened(a) + ")", false, 0, depth};
    case UnaryOp::rsqrt: return {"(" + literal(1.0, t) + " / sqrt" + call + ")", false, 0, depth};
    case UnaryOp::sigmoid:
      return {"(" + literal(1.0, t) + " / (" + literal(1.0, t) + " + exp(-" + a.text + ")))", false,
              0, depth};
    case UnaryOp::normal_cdf:
      return {"(" + literal(0.5, t) + " * erfc(" + literal(-0.70710678118654752, t) + " * " +
                  a.text + "))",
              false, 0, depth};
    case UnaryOp::exp:
    case UnaryOp::exp2:
    case UnaryOp::expm1:
    case UnaryOp::log:
    case UnaryOp::log1p:
    case UnaryOp::sqrt:
    case UnaryOp::tanh:
    case UnaryOp::erf:
    case UnaryOp::sin:
    case UnaryOp::cos:
    case UnaryOp::tan:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atan: return {op_name(unary.op) + call, false, 0, depth};
  }
  TW_UNREACHABLE("a unary operator");
}

Text Emitter::binary_of(const Expr& e, const expr::Binary& binary) {
  if (binary.op == BinaryOp::logical_and || binary.op == BinaryOp::logical_or)
    return logical_of(binary);
  return is_float(binary.a.type()) ? float_binary(binary) : integer_binary(e, binary);
}

Text Emitter::float_binary(const expr::Binary& binary) {
  const Expr &x = binary.a, &y = binary.b;
  const DType t = x.type();
  const std::string type = value_type(t);
  const auto infix = [&](const char* op, const Text& a, const Text& b) {
    return Text{"(" + a.text + " " + op + " " + b.text + ")", false, 0,
                std::max(a.depth, b.depth) + 1};
  };
  const auto call = [&](const std::string& f, const Text& a, const Text& b) {
    return Text{f + "(" + a.text + ", " + b.text + ")", false, 0, std::max(a.depth, b.depth) + 1};
  };
  const bool sum = binary.op == BinaryOp::add || binary.op == BinaryOp::sub;
  const auto *left = as_binary(x, BinaryOp::mul), *right = as_binary(y, BinaryOp::mul);
  // Fused wherever the CPU back end fuses.
  if (sum && (t == DType::f32 || t == DType::f64) && (left || right)) {
    const expr::Binary& product = right ? *right : *left;
    const bool minus = binary.op == BinaryOp::sub;
    const Text p = value(product.a), q = value(product.b), r = value(right ? x : y);
    return {"tw_fma_" + type + "(" + (minus && right ? "-" : "") + p.text + ", " + q.text + ", " +
                (minus && !right ? "-" : "") + r.text + ")",
            false, 0, std::max({p.depth, q.depth, r.depth}) + 1};
  }
  if (const auto* exponent = as<expr::Float>(y); exponent && binary.op == BinaryOp::pow) {
    const double power = exponent->value;
    Text a = value(x);
    if (power == 1) return a;
    if (power == -1) return infix("/", {literal(1.0, t)}, a);
    if (power == 0.5) return {"tw_root_" + type + "(" + a.text + ")", false, 0, a.depth + 1};
    if ((power == 2 || power == 3) && !inline_ && !is_leaf(x)) a = {named(type, a)};
    if (power == 2) return infix("*", a, a);
    if (power == 3) return infix("*", infix("*", a, a), a);
  }
  const Text a = value(x), b = value(y);
  switch (binary.op) {
    case BinaryOp::add: return infix("+", a, b);
    case BinaryOp::sub: return infix("-", a, b);
    case BinaryOp::mul: return infix("*", a, b);
    case BinaryOp::div: return infix("/", a, b);
    case BinaryOp::floor_div:
      return {"floor(" + a.text + " / " + b.text + ")", false, 0, std::max(a.depth, b.depth) + 1};
    case BinaryOp::mod: return call("fmod", a, b);
    case BinaryOp::floor_mod: return call("tw_floor_mod_" + type, a, b);
    case BinaryOp::min: return call("tw_min_" + type, a, b);
    case BinaryOp::max: return call("tw_max_" + type, a, b);
    case BinaryOp::pow: return call("pow", a, b);
    case BinaryOp::lt: return infix("<", a, b);
    case BinaryOp::le: return infix("<=", a, b);
    case BinaryOp::eq: return infix("==", a, b);
    case BinaryOp::ne: return infix("!=", a, b);
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: break;
  }
  TW_UNREACHABLE("{0} of floats", op_name(binary.op));
}

Text Emitter::divided(const expr::Binary& binary, const Text& a, const Text& b) {
  const DType t = binary.a.type();
  const bool rest = binary.op == BinaryOp::mod || binary.op == BinaryOp::floor_mod;
  const int depth = std::max(a.depth, b.depth) + 1;
  if (t == DType::i64) {
    const Bounds x = constant_bounds(binary.a, ranges_), y = constant_bounds(binary.b, ranges_);
    if (x.min && *x.min >= 0 && y.min && *y.min > 0)
      return {"(" + a.text + (rest ? " % " : " / ") + b.text + ")", a.narrow && b.narrow, 0, depth};
  }
  return {"tw_" + std::string(op_name(binary.op)) + "_" + value_type(t) + "(" + a.text + ", " +
              b.text + ")",
          false, 0, depth};
}

Text Emitter::integer_binary(const Expr& e, const expr::Binary& binary) {
  const Text a = value(binary.a), b = value(binary.b);
  const DType t = binary.a.type();
  const std::string type = value_type(t);
  const int depth = std::max(a.depth, b.depth) + 1;
  const bool narrow = t == DType::i64 && a.narrow && b.narrow;
  const auto infix = [&](const char* op) {
    return Text{"(" + a.text + " " + op + " " + b.text + ")", narrow, 0, depth};
  };
  const auto call = [&](const std::string& f) {
    return Text{"tw_" + f + "_" + type + "(" + a.text + ", " + b.text + ")", false, 0, depth};
  };
  const auto wrapping = [&](const char* op) {
    if (t == DType::i64 && !e->data)
      return narrow && fits_int(e)
                 ? infix(op)
                 : Text{"(" + widened(a) + " " + op + " " + widened(b) + ")", false, 0, depth};
    const std::string u = unsigned_type(t);
    return Text{"((" + type + ")((" + u + ")" + a.text + " " + op + " (" + u + ")" + b.text + "))",
                false, 0, depth};
  };
  switch (binary.op) {
    case BinaryOp::add: return wrapping("+");
    case BinaryOp::sub: return wrapping("-");
    case BinaryOp::mul: return wrapping("*");
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::mod:
    case BinaryOp::floor_mod: return divided(binary, a, b);
    case BinaryOp::min:
    case BinaryOp::max:
      if (narrow)
        return {std::string(op_name(binary.op)) + "(" + a.text + ", " + b.text + ")", true, 0,
                depth};
      return call(op_name(binary.op));
    case BinaryOp::pow:
    case BinaryOp::shl:
    case BinaryOp::shr: return call(op_name(binary.op));
    case BinaryOp::lt: return infix("<");
    case BinaryOp::le: return infix("<=");
    case BinaryOp::eq: return infix("==");
    case BinaryOp::ne:
    case BinaryOp::logical_xor: return infix("!=");
    case BinaryOp::bit_and: return infix("&");
    case BinaryOp::bit_or: return infix("|");
    case BinaryOp::bit_xor: return infix("^");
    case BinaryOp::logical_and:
    case BinaryOp::logical_or: break;
  }
  TW_UNREACHABLE("an integer operator");
}

// Writes `condition ? yes : no` as statements. Each side's constants are computed only on that
// side.
Text Emitter::conditional(const std::string& type, const std::string& condition, const Expr& yes,
                          const Expr& no) {
  const std::string name = names_.fresh("t");
  line(type + " " + name + ";");
  open("if (" + condition + ")");
  const std::string first = value(yes).text;
  line(name + " = " + first + ";");
  close();
  open("else");
  const std::string second = value(no).text;
  line(name + " = " + second + ";");
  close();
  return {name};
}

Text Emitter::logical_of(const expr::Binary& binary) {
  const Text a = value(binary.a);
  const Expr& second = binary.b;
  const bool conjunction = binary.op == BinaryOp::logical_and, guarded = sched::has_load(second);
  if (guarded && !inline_ && complex(second)) {
    kept_.push_back(bool_imm(!conjunction));
    return conjunction ? conditional("int", a.text, second, kept_.back())
                       : conditional("int", a.text, kept_.back(), second);
  }
  const bool before = inline_;
  inline_ |= guarded;
  const Text b = value(second);
  inline_ = before;
  return {"(" + a.text + (conjunction ? " && " : " || ") + b.text + ")", false, 0,
          std::max(a.depth, b.depth) + 1};
}

Text Emitter::select_of(const expr::Select& select) {
  const Expr &then = select.then, &otherwise = select.otherwise;
  const Text condition = value(select.condition);
  const bool guarded = sched::has_load(then) || sched::has_load(otherwise);
  if (guarded && !inline_ && (complex(then) || complex(otherwise)))
    return conditional(value_type(then.type()), condition.text, then, otherwise);
  const bool before = inline_;
  inline_ |= guarded;
  const Text a = value(then), b = value(otherwise);
  inline_ = before;
  const bool narrow = a.narrow && b.narrow;
  return {"(" + condition.text + " ? " + a.text + " : " + b.text + ")", narrow, 0,
          std::max({condition.depth, a.depth, b.depth}) + 1};
}

Text Emitter::cast_of(const expr::Cast& cast, DType to) {
  const DType from = cast.a.type();
  const Text a = value(cast.a);
  const int depth = a.depth + 1;
  if (from == to) return a;
  const std::string type = value_type(to);
  if (to == DType::boolean) return {"(" + a.text + " != 0)", false, 0, depth};
  if (is_float(to)) {
    const bool shorter = to == DType::f16 || to == DType::bf16;
    const bool same = value_type(from) == type;
    const Text real = same ? a : Text{"(" + type + ")" + a.text, false, 0, depth};
    if (shorter)
      return {
          std::string(to == DType::f16 ? "tw_round_half(" : "tw_round_bfloat16(") + real.text + ")",
          false, 0, depth};
    return same ? a : Text{"(" + real.text + ")", false, 0, depth};
  }
  if (from == DType::boolean) return {"((" + type + ")" + a.text + ")", false, 0, depth};
  if (cast.saturate)
    return {"tw_sat_" + type + "_" + value_type(from) + "(" + a.text + ")", false, 0, depth};
  if (!is_float(from)) return {"((" + type + ")" + a.text + ")", false, 0, depth};
  if (to == DType::u64)
    return {"tw_bits_ulong_" + value_type(from) + "(" + a.text + ")", false, 0, depth};
  const std::string wide = to == DType::u32 || to == DType::i64 ? "long" : "int",
                    number = "tw_sat_" + wide + "_" + value_type(from) + "(" + a.text + ")";
  return {wide == type ? number : "((" + type + ")" + number + ")", false, 0, depth};
}

}  // namespace tw::opencl
