// Printer and parser of expressions (grammar in ir/text.h). Both use one table of infix operators.
#include "ir/text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "ir/scalar_ops.h"
#include "support/diag.h"

namespace tw {
namespace {

// A higher level binds tighter. All operators associate to the left.
struct Infix {
  BinaryOp op;
  const char* text;
  int level;
};
constexpr std::array<Infix, 17> kInfix = {{
    {BinaryOp::logical_or, "||", 1},
    {BinaryOp::logical_and, "&&", 2},
    {BinaryOp::lt, "<", 3},
    {BinaryOp::le, "<=", 3},
    {BinaryOp::eq, "==", 3},
    {BinaryOp::ne, "!=", 3},
    {BinaryOp::bit_or, "|", 4},
    {BinaryOp::bit_xor, "^", 4},
    {BinaryOp::bit_and, "&", 4},
    {BinaryOp::shl, "<<", 5},
    {BinaryOp::shr, ">>", 5},
    {BinaryOp::add, "+", 6},
    {BinaryOp::sub, "-", 6},
    {BinaryOp::mul, "*", 7},
    {BinaryOp::div, "/", 7},
    {BinaryOp::floor_div, "//", 7},
    {BinaryOp::floor_mod, "%", 7},
}};
constexpr int kPrefixLevel = 8, kPrimaryLevel = 9;

const Infix* infix_of(BinaryOp op) {
  for (const Infix& i : kInfix)
    if (i.op == op) return &i;
  return nullptr;
}

std::string float_text(double value, DType type) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end = type == DType::f64
                 ? std::to_chars(buffer, buffer + sizeof buffer, value).ptr
                 : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string suffix(DType type, DType plain) {
  return type == plain ? "" : std::string(":") + dtype_name(type);
}

std::string text_of(double value, DType type) {
  return float_text(value, type) + suffix(type, DType::f32);
}
std::string text_of(int64_t value, DType type) {
  if (type == DType::boolean) return value ? "true" : "false";
  std::string digits = type == DType::u64 ? std::to_string(static_cast<uint64_t>(value))
                                          : std::to_string(value);
  return digits + suffix(type, DType::i64);
}

using Names = std::function<std::string(BufferId)>;

void write(std::string& out, const Expr& e, const Names& names, int level);

void write_list(std::string& out, const std::vector<Expr>& list, const Names& names) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    write(out, list[i], names, 0);
  }
}
void write_call(std::string& out, const std::string& name, const std::vector<Expr>& operands,
                const Names& names) {
  out += name + "(";
  write_list(out, operands, names);
  out += ')';
}

void write_kind(std::string& out, const expr::Unary& e, const Names& names, int level) {
  const char* prefix = e.op == UnaryOp::neg           ? "-"
                       : e.op == UnaryOp::logical_not ? "!"
                       : e.op == UnaryOp::bit_not     ? "~"
                                                      : nullptr;
  if (!prefix) return write_call(out, op_name(e.op), {e.a}, names);
  bool wrap = level > kPrefixLevel;
  out += wrap ? "(" : "";
  out += prefix;
  write(out, e.a, names, kPrimaryLevel);
  out += wrap ? ")" : "";
}

void write_kind(std::string& out, const expr::Binary& e, const Names& names, int level) {
  const Infix* infix = infix_of(e.op);
  if (!infix) return write_call(out, op_name(e.op), {e.a, e.b}, names);
  bool wrap = level > infix->level;
  out += wrap ? "(" : "";
  write(out, e.a, names, infix->level);
  out += ' ';
  out += infix->text;
  out += ' ';
  write(out, e.b, names, infix->level + 1);
  out += wrap ? ")" : "";
}

void write(std::string& out, const Expr& e, const Names& names, int level) {
  const auto write_number = [&](const std::string& text) {
    bool wrap = text[0] == '-' && level > kPrefixLevel;
    out += wrap ? "(" + text + ")" : text;
  };
  match(
      e, [&](const expr::Int& number) { write_number(text_of(number.value, e->type)); },
      [&](const expr::Float& number) { write_number(text_of(number.value, e->type)); },
      [&](const expr::Var& variable) { out += variable.name + suffix(e->type, DType::i64); },
      [&](const expr::Load& read) {
        TW_CHECK(names != nullptr, "printing a load needs the buffers' names");
        out += names(read.buffer) + "[";
        write_list(out, read.indices, names);
        out += ']';
      },
      [&](const expr::Unary& made) { write_kind(out, made, names, level); },
      [&](const expr::Binary& made) { write_kind(out, made, names, level); },
      [&](const expr::Select& choice) {
        write_call(out, "select", {choice.condition, choice.then, choice.otherwise}, names);
      },
      [&](const expr::Cast& converted) {
        write_call(out, (converted.saturate ? "sat." : "") + std::string(dtype_name(e->type)),
                   {converted.a}, names);
      });
}

}  // namespace

std::string to_string(const Expr& e, const std::function<std::string(BufferId)>& buffer_name) {
  TW_CHECK(e.defined(), "printing no expression");
  std::string out;
  write(out, e, buffer_name, 0);
  return out;
}

namespace {

class ExprParser {
 public:
  ExprParser(Lexer& lexer, const ExprScope& scope) : lexer_(lexer), scope_(scope) {}

  Expected<Expr> parse(int level) {
    TW_TRY(lexer_.enter());
    auto result = parse_chain(level);
    lexer_.leave();
    return result;
  }

  // Gives a whole-number literal the type; returns any other expression as it is.
  Expected<Expr> fit(const Expr& e, DType type, const Token& at) {
    const auto literal = e.type() == DType::i64 ? as_const(e) : std::nullopt;
    if (!literal || type == DType::i64 || type == DType::boolean) return e;
    if (is_float(type)) return float_imm(static_cast<double>(*literal), type);
    return sized(*literal, type, at);
  }

  Expected<Expr> of_type(DType type) {
    Token start = lexer_.peek();
    TW_ASSIGN(Expr e, parse(0));
    TW_ASSIGN(e, fit(e, type, start));
    if (e.type() == type) return e;
    return lexer_.error_at(start, llvm::formatv("expected {0}, found an expression of type {1}",
                                                dtype_name(type), dtype_name(e.type()))
                                      .str());
  }

 private:
  static constexpr int kMaxChain = 4000;  // operators of one level in a row

  struct Found {
    BinaryOp op;
    int level;
    bool swap;
  };
  std::optional<Found> infix_here() const {
    const Token& t = lexer_.peek();
    if (t.kind != TokenKind::punctuation) return std::nullopt;
    if (t.text == ">") return Found{BinaryOp::lt, 3, true};
    if (t.text == ">=") return Found{BinaryOp::le, 3, true};
    for (const Infix& i : kInfix)
      if (t.text == i.text) return Found{i.op, i.level, false};
    return std::nullopt;
  }

  Expected<Expr> parse_chain(int level) {
    TW_ASSIGN(Expr left, parse_prefix());
    for (int count = 0;; ++count) {
      std::optional<Found> infix = infix_here();
      if (!infix || infix->level < level) return left;
      if (count > kMaxChain) return lexer_.error_here("the expression is too long");
      Token at = lexer_.next();
      TW_ASSIGN(Expr right, parse(infix->level + 1));
      if (infix->swap) std::swap(left, right);
      TW_ASSIGN(left, make_binary(infix->op, left, right, at));
    }
  }

  Expected<Expr> make_binary(BinaryOp op, Expr a, Expr b, const Token& at) {
    TW_ASSIGN(a, fit(a, b.type(), at));
    TW_ASSIGN(b, fit(b, a.type(), at));
    if (const char* why = operand_error(op, a.type(), b.type()))
      return lexer_.error_at(at, llvm::formatv("{0} of {1} and {2}: {3}", op_name(op),
                                               dtype_name(a.type()), dtype_name(b.type()), why)
                                     .str());
    return binary(op, std::move(a), std::move(b));
  }
  Expected<Expr> make_unary(UnaryOp op, Expr a, const Token& at) {
    if (const char* why = operand_error(op, a.type()))
      return lexer_.error_at(
          at, llvm::formatv("{0} of {1}: {2}", op_name(op), dtype_name(a.type()), why).str());
    return unary(op, std::move(a));
  }

  Expected<Expr> parse_prefix() {
    Token at = lexer_.peek();
    TokenKind after = lexer_.peek(1).kind;
    if (at.is("-") && (after == TokenKind::integer || after == TokenKind::real)) {
      lexer_.next();
      return parse_literal(true);
    }
    UnaryOp op = UnaryOp::neg;
    if (at.is("!")) op = UnaryOp::logical_not;
    else if (at.is("~")) op = UnaryOp::bit_not;
    else if (!at.is("-")) return parse_primary();
    lexer_.next();
    TW_ASSIGN(Expr operand, parse(kPrefixLevel));
    return make_unary(op, operand, at);
  }

  std::optional<DType> accept_suffix() {
    if (!lexer_.at(":") || lexer_.peek(1).kind != TokenKind::identifier) return std::nullopt;
    std::optional<DType> type = dtype_from_name(lexer_.peek(1).text);
    if (type) {
      lexer_.next();
      lexer_.next();
    }
    return type;
  }

  Expected<Expr> sized(int64_t value, DType type, const Token& at) {
    if (wrap_to(type, value) == value && !(type == DType::u64 && value < 0))
      return int_imm(value, type);
    return lexer_.error_at(at,
                           llvm::formatv("{0} does not fit {1}", value, dtype_name(type)).str());
  }

  Expected<Expr> parse_literal(bool negative) {
    Token token = lexer_.next();
    std::optional<DType> suffix = accept_suffix();
    bool real = token.kind == TokenKind::real;
    DType type = suffix.value_or(real ? DType::f32 : DType::i64);
    if (is_float(type)) {
      double value = type == DType::f64 ? std::strtod(token.text.c_str(), nullptr)
                                        : std::strtof(token.text.c_str(), nullptr);
      return float_imm(negative ? -value : value, type);
    }
    if (real || type == DType::boolean)
      return lexer_.error_at(
          token, llvm::formatv("{0} is no value of type {1}", token.text, dtype_name(type)).str());
    if (type == DType::u64 && !negative) return int_imm(static_cast<int64_t>(token.integer), type);
    if (token.integer > uint64_t{INT64_MAX} + negative)
      return lexer_.error_at(
          token, llvm::formatv("{0} does not fit {1}", token.text, dtype_name(type)).str());
    return sized(static_cast<int64_t>(negative ? -token.integer : token.integer), type, token);
  }

  Expected<std::vector<Expr>> parse_list(std::string_view close) {
    std::vector<Expr> list;
    if (lexer_.accept(close)) return list;
    do {
      TW_ASSIGN(Expr e, parse(0));
      list.push_back(std::move(e));
    } while (lexer_.accept(","));
    TW_TRY(lexer_.expect(close));
    return list;
  }

  Expected<Expr> parse_primary() {
    Token token = lexer_.peek();
    if (token.kind == TokenKind::integer || token.kind == TokenKind::real)
      return parse_literal(false);
    if (lexer_.accept("(")) {
      TW_ASSIGN(Expr inner, parse(0));
      TW_TRY(lexer_.expect(")"));
      return inner;
    }
    if (token.kind != TokenKind::identifier) return lexer_.expected("an expression");
    lexer_.next();
    if (token.text == "true" || token.text == "false") return bool_imm(token.text == "true");
    if (lexer_.accept("(")) return parse_call(token);
    if (lexer_.accept("[")) return parse_load(token);
    std::optional<DType> suffix = accept_suffix();
    if (token.text == "inf" || token.text == "nan") {
      DType type = suffix.value_or(DType::f32);
      if (!is_float(type))
        return lexer_.error_at(token, token.text + " is no value of type " + dtype_name(type));
      return float_imm(token.text == "inf" ? HUGE_VAL : std::nan(""), type);
    }
    return var(token.text, suffix.value_or(DType::i64));
  }

  Expected<Expr> parse_load(const Token& name) {
    std::optional<LoadTarget> target = scope_.buffer ? scope_.buffer(name.text) : std::nullopt;
    if (!target)
      return lexer_.error_at(name, llvm::formatv("no buffer '{0}' here", name.text).str());
    TW_ASSIGN(std::vector<Expr> indices, parse_list("]"));
    return load(target->buffer, target->type, std::move(indices));
  }

  Expected<Expr> parse_call(const Token& name) {
    TW_ASSIGN(std::vector<Expr> args, parse_list(")"));
    auto takes = [&](size_t count) -> Error {
      if (args.size() == count) return Error::success();
      return lexer_.error_at(
          name,
          llvm::formatv("{0} takes {1} operands, not {2}", name.text, count, args.size()).str());
    };
    if (name.text == "select") {
      TW_TRY(takes(3));
      TW_ASSIGN(args[1], fit(args[1], args[2].type(), name));
      TW_ASSIGN(args[2], fit(args[2], args[1].type(), name));
      if (args[0].type() != DType::boolean || args[1].type() != args[2].type())
        return lexer_.error_at(name, "select takes a bool and two values of one type");
      return select(args[0], args[1], args[2]);
    }
    std::string_view type_name = name.text;
    bool saturate = type_name.starts_with("sat.");
    if (saturate) type_name.remove_prefix(4);
    if (auto type = dtype_from_name(type_name)) {
      TW_TRY(takes(1));
      return cast(*type, args[0], saturate);
    }
    for (int op = 0; op < kUnaryOpCount; ++op)
      if (name.text == op_name(static_cast<UnaryOp>(op))) {
        TW_TRY(takes(1));
        return make_unary(static_cast<UnaryOp>(op), args[0], name);
      }
    for (int op = 0; op < kBinaryOpCount; ++op)
      if (name.text == op_name(static_cast<BinaryOp>(op))) {
        TW_TRY(takes(2));
        return make_binary(static_cast<BinaryOp>(op), args[0], args[1], name);
      }
    return lexer_.error_at(name, llvm::formatv("unknown function '{0}'", name.text).str());
  }

  Lexer& lexer_;
  const ExprScope& scope_;
};

}  // namespace

Expected<Expr> parse_expr(Lexer& lexer, const ExprScope& scope) {
  return ExprParser(lexer, scope).parse(0);
}

Expected<Expr> parse_expr(std::string_view text, const ExprScope& scope) {
  Lexer lexer(text);
  TW_ASSIGN(Expr e, parse_expr(lexer, scope));
  if (!lexer.at_end()) return lexer.expected("the end of the expression");
  return e;
}

Expected<Expr> parse_expr_of(Lexer& lexer, DType type, const ExprScope& scope) {
  return ExprParser(lexer, scope).of_type(type);
}

}  // namespace tw
