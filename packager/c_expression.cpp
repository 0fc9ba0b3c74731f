#include "packager/c_expression.h"

#include <map>

#include "support/diag.h"

namespace tw {
namespace {

constexpr size_t kLongPart = 60;  // columns

// How C writes an operator: between its operands, or as a function of them
struct CSpelling {
  const char* infix;
  const char* function;
};

CSpelling spelling_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add: return {"+", nullptr};
    case BinaryOp::sub: return {"-", nullptr};
    case BinaryOp::mul: return {"*", nullptr};
    case BinaryOp::div: return {"/", nullptr};
    case BinaryOp::mod: return {"%", nullptr};
    case BinaryOp::lt: return {"<", nullptr};
    case BinaryOp::le: return {"<=", nullptr};
    case BinaryOp::eq: return {"==", nullptr};
    case BinaryOp::ne: return {"!=", nullptr};
    case BinaryOp::logical_and: return {"&&", nullptr};
    case BinaryOp::logical_or: return {"||", nullptr};
    case BinaryOp::floor_div: return {nullptr, "tw_size_floor_div"};
    case BinaryOp::floor_mod: return {nullptr, "tw_size_floor_mod"};
    case BinaryOp::min: return {nullptr, "tw_size_min"};
    case BinaryOp::max: return {nullptr, "tw_size_max"};
    case BinaryOp::pow:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return {nullptr, nullptr};
  }
  TW_UNREACHABLE("bad operator");
}

class CWriter {
 public:
  CWriter(const CVariable& variable, const std::string& stem) : variable_(variable), stem_(stem) {}

  std::optional<CExpression> write(const Expr& e) {
    const std::optional<std::string> value = part(e);
    if (!value) return std::nullopt;
    return CExpression{std::move(statements_), *value};
  }

 private:
  std::optional<std::string> part(const Expr& e) {
    if (const auto known = known_.find(e.get()); known != known_.end()) return known->second;
    std::optional<std::string> text = spelled(e);
    if (text && text->size() > kLongPart) {
      const std::string name = stem_ + std::to_string(count_++);
      statements_ += "  const int64_t " + name + " = " + *text + ";\n";
      text = name;
    }
    return known_.emplace(e.get(), std::move(text)).first->second;
  }

  std::optional<std::string> spelled(const Expr& e) {
    if (const auto number = as_const(e)) return std::to_string(*number);
    if (const std::string* name = var_name(e)) return variable_(*name);
    std::vector<std::string> parts;
    const bool unknown = any_operand(*e, [&](const Expr& operand) {
      const std::optional<std::string> text = part(operand);
      if (text) parts.push_back(*text);
      return !text;
    });
    if (unknown) return std::nullopt;
    if (is<expr::Select>(e)) return "(" + parts[0] + " ? " + parts[1] + " : " + parts[2] + ")";
    const auto* made = as<expr::Binary>(e);
    if (!made) return std::nullopt;
    const CSpelling spelling = spelling_of(made->op);
    if (spelling.infix) return "(" + parts[0] + " " + spelling.infix + " " + parts[1] + ")";
    if (spelling.function)
      return std::string(spelling.function) + "(" + parts[0] + ", " + parts[1] + ")";
    return std::nullopt;
  }

  const CVariable& variable_;
  const std::string& stem_;
  // Looked up only, never iterated: addresses have no fixed order.
  std::map<const ExprNode*, std::optional<std::string>> known_;
  std::string statements_;
  int count_ = 0;
};

}  // namespace

std::optional<CExpression> c_expression(const Expr& e, const CVariable& variable,
                                        const std::string& stem) {
  return CWriter(variable, stem).write(e);
}

std::string c_expression_functions() {
  return R"(#ifndef TW_SIZE_FUNCTIONS
#define TW_SIZE_FUNCTIONS
static inline int64_t tw_size_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tw_size_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t tw_size_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t tw_size_floor_mod(int64_t a, int64_t b) {
  return a - tw_size_floor_div(a, b) * b;
}
#endif
)";
}

}  // namespace tw
