#include "support/lexer.h"

#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

namespace tw {
namespace {

constexpr std::array<std::string_view, 12> kTwoChar = {"->", "==", "!=", "<=", ">=", "&&",
                                                       "||", "<<", ">>", "//", "+=", "*="};
constexpr std::string_view kOneChar = "()[]{}<>,:=+-*/%@!~&|^#?.$";

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  std::vector<Token> scan() {
    std::vector<Token> tokens;
    do {
      skip_blank();
      Token token;
      token.line = line_;
      token.column = static_cast<int>(at_ - line_start_) + 1;
      token.begin = at_;
      scan_one(token);
      token.end = at_;
      tokens.push_back(std::move(token));
    } while (tokens.back().kind != TokenKind::end && tokens.back().kind != TokenKind::invalid);
    if (tokens.back().kind == TokenKind::invalid) {
      Token end = tokens.back();
      end.kind = TokenKind::end;
      tokens.push_back(end);
    }
    return tokens;
  }

 private:
  char look(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_blank() {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == ';') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  void invalid(Token& token, std::string why) {
    token.kind = TokenKind::invalid;
    token.text = std::move(why);
  }

  void scan_one(Token& token) {
    if (at_ >= text_.size()) return;
    char c = look();
    if (is_alpha(c)) return scan_word(token);
    if (is_digit(c)) return scan_number(token);
    if (c == '"') return scan_string(token);
    token.kind = TokenKind::punctuation;
    for (std::string_view two : kTwoChar)
      if (text_.substr(at_, 2) == two) {
        token.text = two;
        at_ += 2;
        return;
      }
    if (c == '\0' || kOneChar.find(c) == std::string_view::npos)
      return invalid(token,
                     llvm::formatv("unexpected character {0}", quoted(text_.substr(at_, 1))).str());
    token.text = c;
    ++at_;
  }

  void scan_word(Token& token) {
    token.kind = TokenKind::identifier;
    size_t begin = at_;
    while (is_alpha(look()) || is_digit(look()) || look() == '.') ++at_;
    token.text = text_.substr(begin, at_ - begin);
  }

  template <class Fn>
  void skip_while(Fn fn) {
    while (fn(look())) ++at_;
  }

  void scan_number(Token& token) {
    size_t begin = at_;
    bool hex = look() == '0' && (look(1) == 'x' || look(1) == 'X');
    auto digit = [hex](char c) { return hex ? hex_value(c) >= 0 : is_digit(c); };
    if (hex) at_ += 2;
    size_t digits = at_;
    skip_while(digit);
    bool any = at_ > digits, real = false;
    if (look() == '.') {
      real = true;
      ++at_;
      skip_while(digit);
    }
    char exponent = hex ? 'p' : 'e';
    if ((look() | 0x20) == exponent) {
      real = true;
      ++at_;
      if (look() == '+' || look() == '-') ++at_;
      if (!is_digit(look())) any = false;
      skip_while(is_digit);
    }
    token.text = text_.substr(begin, at_ - begin);
    if (!any || is_alpha(look()) || look() == '.')
      return invalid(token, llvm::formatv("malformed number '{0}'", token.text).str());
    token.kind = real ? TokenKind::real : TokenKind::integer;
    if (!real && llvm::StringRef(token.text).getAsInteger(hex ? 0 : 10, token.integer))
      invalid(token, llvm::formatv("{0} does not fit in 64 bits", token.text).str());
  }

  void scan_string(Token& token) {
    token.kind = TokenKind::string;
    for (++at_; look() != '"'; ++at_) {
      char c = look();
      if (at_ >= text_.size() || c == '\n') return invalid(token, "string without an end");
      if (c != '\\') {
        token.text += c;
        continue;
      }
      ++at_;
      constexpr std::string_view kEscapes = "\"\\ntr", kMeanings = "\"\\\n\t\r";
      size_t which = look() == '\0' ? std::string_view::npos : kEscapes.find(look());
      if (which != std::string_view::npos) {
        token.text += kMeanings[which];
      } else if (look() == 'x' && hex_value(look(1)) >= 0 && hex_value(look(2)) >= 0) {
        token.text += static_cast<char>(hex_value(look(1)) * 16 + hex_value(look(2)));
        at_ += 2;
      } else {
        return invalid(token, "unknown escape in a string");
      }
    }
    ++at_;
  }

  std::string_view text_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view file)
    : file_(file), tokens_(Scanner(text).scan()) {}

const Token& Lexer::peek(size_t ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

Token Lexer::next() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool Lexer::accept(std::string_view word) {
  if (!at(word)) return false;
  next();
  return true;
}

Error Lexer::error_at(const Token& token, std::string message) const {
  return make_error(
      Diag{DiagCode::parse, std::move(message), {file_, token.line, token.column}, {}});
}

Error Lexer::expected(std::string_view what) const {
  const Token& token = peek();
  if (token.kind == TokenKind::invalid) return error_here(token.text);
  std::string found = token.kind == TokenKind::end      ? "the end of the text"
                      : token.kind == TokenKind::string ? tw::quoted(token.text)
                                                        : "'" + token.text + "'";
  return error_here(llvm::formatv("expected {0}, found {1}", what, found).str());
}

Error Lexer::expect(std::string_view word) {
  if (accept(word)) return Error::success();
  return expected(llvm::formatv("'{0}'", word).str());
}

Expected<std::string> Lexer::identifier(std::string_view what) {
  if (peek().kind != TokenKind::identifier) return expected(what);
  return next().text;
}

Expected<std::string> Lexer::string(std::string_view what) {
  if (peek().kind != TokenKind::string) return expected(what);
  return next().text;
}

Expected<int64_t> Lexer::integer(std::string_view what) {
  bool negative = at("-") && peek(1).kind == TokenKind::integer;
  const Token& token = peek(negative);
  if (token.kind != TokenKind::integer) return expected(what);
  if (token.integer > uint64_t{1} << 63 || (!negative && token.integer == uint64_t{1} << 63))
    return error_at(token, llvm::formatv("{0} does not fit in 64 bits", token.text).str());
  int64_t value = static_cast<int64_t>(negative ? -token.integer : token.integer);
  position_ += 1 + negative;
  return value;
}

Expected<double> Lexer::number(std::string_view what) {
  bool negative = at("-");
  const Token& token = peek(negative);
  double value = 0;
  if (token.kind == TokenKind::integer) value = static_cast<double>(token.integer);
  else if (token.kind == TokenKind::real) value = std::strtod(token.text.c_str(), nullptr);
  else if (token.is("inf")) value = std::numeric_limits<double>::infinity();
  else if (token.is("nan")) value = std::numeric_limits<double>::quiet_NaN();
  else return expected(what);
  position_ += 1 + negative;
  return negative ? -value : value;
}

Error Lexer::enter() {
  if (depth_ >= kMaxDepth)
    return make_error(Diag{DiagCode::limit,
                           llvm::formatv("nested deeper than {0} levels", kMaxDepth).str(),
                           {file_, peek().line, peek().column},
                           {}});
  ++depth_;
  return Error::success();
}

std::string quoted(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (u < 0x20 || u == 0x7f) ((out += "\\x") += kHex[u >> 4]) += kHex[u & 15];
    else out += c;
  }
  return out + "\"";
}

}  // namespace tw
