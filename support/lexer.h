// The one lexer of all text forms: kernels, schedules, graphs. Comments run from ';' to the end of
// the line; '//' is floor_div.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace tw {

enum class TokenKind : uint8_t {
  identifier,   // [A-Za-z_][A-Za-z0-9_.]*; keywords, inf and nan are identifiers too
  integer,      // 42, 0x2a: at most 64 bits, without a sign
  real,         // 1.5, 1e-3, 0x1.8p+1: without a sign
  string,       // "..." with \" \\ \n \t \r \xHH
  punctuation,  // one character, or one of -> == != <= >= && || << >> // += *=
  invalid,      // text holds the reason
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // as written; for a string, the decoded value
  uint64_t integer = 0;
  int line = 0, column = 0;
  size_t begin = 0, end = 0;  // byte offsets
  bool is(std::string_view word) const {
    return (kind == TokenKind::identifier || kind == TokenKind::punctuation) && text == word;
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text, std::string_view file = "");
  const Token& peek(size_t ahead = 0) const;  // at the end of the text: the end token
  Token next();
  bool at_end() const { return peek().kind == TokenKind::end; }
  bool at(std::string_view word) const { return peek().is(word); }
  bool accept(std::string_view word);  // takes an identifier or punctuation with this text
  // The next five take one token, or fail at it with "expected <what>, found ...".
  Error expect(std::string_view word);
  Expected<std::string> identifier(std::string_view what);
  Expected<std::string> string(std::string_view what);
  Expected<int64_t> integer(std::string_view what);  // with an optional '-'
  // Takes an integer, a real, inf or nan, with an optional '-'.
  Expected<double> number(std::string_view what);
  Error error_at(const Token& token, std::string message) const;
  Error error_here(std::string message) const { return error_at(peek(), std::move(message)); }
  // Makes the error "expected <what>, found ..." at the next token.
  Error expected(std::string_view what) const;
  size_t position() const { return position_; }  // for rewind()
  void rewind(size_t position) { position_ = position; }
  // Nesting guard of recursive parsers: enter() fails beyond kMaxDepth.
  static constexpr int kMaxDepth = 400;
  Error enter();
  void leave() { --depth_; }

 private:
  std::string file_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int depth_ = 0;
};

std::string quoted(std::string_view text);  // a string literal that the lexer reads back as `text`

}  // namespace tw
