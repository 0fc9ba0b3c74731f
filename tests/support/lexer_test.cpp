#include "support/lexer.h"

#include <doctest/doctest.h>

#include <cmath>

using tw::Lexer;
using tw::TokenKind;

TEST_CASE("tokens with their places") {
  Lexer lexer("conv.out -> 12 ; a comment -> here\n  1.5e-3 \"a\\\"b\\x41\" <=//", "f.tw");
  CHECK(lexer.peek().text == "conv.out");
  CHECK(*lexer.identifier("a name") == "conv.out");
  CHECK(lexer.accept("->"));
  CHECK(*lexer.integer("a number") == 12);
  CHECK(lexer.peek().line == 2);
  CHECK(lexer.peek().column == 3);
  CHECK(*lexer.number("a number") == 1.5e-3);
  CHECK(*lexer.string("a string") == "a\"bA");
  CHECK(lexer.accept("<="));
  CHECK(!lexer.accept("/"));
  CHECK(lexer.accept("//"));
  CHECK(lexer.at_end());
  CHECK(lexer.next().kind == TokenKind::end);
}

TEST_CASE("numbers of every form") {
  auto number = [](const char* text) { return *Lexer(text).number("a number"); };
  CHECK(number("0x1.8p+1") == 3.0);
  CHECK(number("-inf") == -INFINITY);
  CHECK(std::isnan(number("nan")));
  CHECK(number("1e5") == 1e5);
  CHECK(*Lexer("0xff").integer("n") == 255);
  CHECK(*Lexer("-9223372036854775808").integer("n") == INT64_MIN);
  for (const char* bad :
       {"9223372036854775808", "18446744073709551616", "1x", "1.5.2", "1e", "0x", "a"}) {
    CAPTURE(bad);
    auto value = Lexer(bad).integer("an integer");
    CHECK(!value);
    llvm::consumeError(value.takeError());
  }
}

TEST_CASE("errors name file, line and column") {
  auto error = [](const char* text) {
    Lexer lexer(text, "f.tw");
    while (lexer.peek().kind == TokenKind::identifier) lexer.next();
    return tw::error_text(lexer.expect("{"));
  };
  CHECK(error("a\n b )") == "f.tw:2:4: expected '{', found ')'");
  CHECK(error("a") == "f.tw:1:2: expected '{', found the end of the text");
  CHECK(error("a \"bc") == "f.tw:1:3: string without an end");
  CHECK(error("a \"\\q\"") == "f.tw:1:3: unknown escape in a string");
  CHECK(error("a \x01") == "f.tw:1:3: unexpected character \"\\x01\"");
  CHECK(error("12y") == "f.tw:1:1: malformed number '12'");
}

TEST_CASE("quoted strings read back") {
  std::string odd = "a\"\\\n\t\x01\x7f/\xc3\xa9";
  CHECK(*Lexer(tw::quoted(odd)).string("a string") == odd);
}
