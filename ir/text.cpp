// Printer and parser of expressions (grammar in ir/text.h). One table of infix operators serves both.
#include "ir/text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "ir/int_ops.h"
#include "support/diag.h"

namespace tw {
namespace {

struct Infix { BinaryOp op; const char* text; int level; };  // higher binds tighter; all associate to the left
constexpr std::array<Infix, 17> kInfix = {{
    {BinaryOp::logical_or, "||", 1}, {BinaryOp::logical_and, "&&", 2},
    {BinaryOp::lt, "<", 3}, {BinaryOp::le, "<=", 3}, {BinaryOp::eq, "==", 3}, {BinaryOp::ne, "!=", 3},
    {BinaryOp::bit_or, "|", 4}, {BinaryOp::bit_xor, "^", 4}, {BinaryOp::bit_and, "&", 4},
    {BinaryOp::shl, "<<", 5}, {BinaryOp::shr, ">>", 5}, {BinaryOp::add, "+", 6}, {BinaryOp::sub, "-", 6},
    {BinaryOp::mul, "*", 7}, {BinaryOp::div, "/", 7}, {BinaryOp::floor_div, "//", 7}, {BinaryOp::floor_mod, "%", 7},
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
  auto end = type == DType::f64 ? std::to_chars(buffer, buffer + sizeof buffer, value).ptr
                                : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string suffix(DType type, DType plain) { return type == plain ? "" : std::string(":") + dtype_name(type); }

std::string imm_text(const ExprNode& e) {
  if (e.kind == ExprKind::float_imm) return float_text(e.float_value, e.type) + suffix(e.type, DType::f32);
  if (e.type == DType::boolean) return e.int_value ? "true" : "false";
  std::string digits = e.type == DType::u64 ? std::to_string(static_cast<uint64_t>(e.int_value)) : std::to_string(e.int_value);
  return digits + suffix(e.type, DType::i64);
}

using Names = std::function<std::string(BufferId)>;

void write(std::string& out, const Expr& e, const Names& names, int level);

void write_list(std::string& out, const std::vector<Expr>& list, const Names& names) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    write(out, list[i], names, 0);
  }
}
void write_call(std::string& out, const char* name, const ExprNode& e, const Names& names) {
  out += name;
  out += '(';
  write_list(out, e.args, names);
  out += ')';
}

void write_unary(std::string& out, const ExprNode& e, const Names& names, int level) {
  const char* prefix = e.unary == UnaryOp::neg ? "-" : e.unary == UnaryOp::logical_not ? "!" : e.unary == UnaryOp::bit_not ? "~" : nullptr;
  if (!prefix) return write_call(out, op_name(e.unary), e, names);
  bool wrap = level > kPrefixLevel;
  out += wrap ? "(" : "";
  out += prefix;
  write(out, e.args[0], names, kPrimaryLevel);
  out += wrap ? ")" : "";
}

void write_binary(std::string& out, const ExprNode& e, const Names& names, int level) {
  const Infix* infix = infix_of(e.binary);
  if (!infix) return write_call(out, op_name(e.binary), e, names);
  bool wrap = level > infix->level;
  out += wrap ? "(" : "";
  write(out, e.args[0], names, infix->level);
  out += ' ';
  out += infix->text;
  out += ' ';
  write(out, e.args[1], names, infix->level + 1);
  out += wrap ? ")" : "";
}

void write(std::string& out, const Expr& e, const Names& names, int level) {
  switch (e->kind) {
    case ExprKind::int_imm:
    case ExprKind::float_imm: {
      std::string text = imm_text(*e);
      bool wrap = text[0] == '-' && level > kPrefixLevel;
      out += wrap ? "(" + text + ")" : text;
      return;
    }
    case ExprKind::var: out += e->name + suffix(e->type, DType::i64); return;
    case ExprKind::load:
      TW_CHECK(names != nullptr, "printing a load needs the buffers' names");
      out += names(e->buffer) + "[";
      write_list(out, e->args, names);
      out += ']';
      return;
    case ExprKind::unary: write_unary(out, *e, names, level); return;
    case ExprKind::binary: write_binary(out, *e, names, level); return;
    case ExprKind::select: write_call(out, "select", *e, names); return;
    case ExprKind::cast: write_call(out, ((e->saturate ? "sat." : "") + std::string(dtype_name(e->type))).c_str(), *e, names); return;
  }
  TW_UNREACHABLE("bad expression kind");
}

}  // namespace

std::string to_string(const Expr& e, const std::function<std::string(BufferId)>& buffer_name) {
  TW_CHECK(e.defined(), "printing no expression");
  std::string out;
  write(out, e, buffer_name, 0);
  return out;
}

}  // namespace tw
