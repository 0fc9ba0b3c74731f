// Names and texts from strangers, as terminals and logs get them.
#include "cli/text/printable.h"

#include <doctest/doctest.h>

#include <sstream>

#include "cli/text/text_width.h"
#include "support/json.h"

using namespace tw;

namespace {

std::string shown(const std::string& text) { return Printable()(text); }

std::string streamed(const std::vector<std::string>& pieces) {
  std::ostringstream out;
  PrintableStream stream(out);
  for (const std::string& piece : pieces) stream << piece;
  return out.str();
}

}  // namespace

TEST_CASE("text of all languages stays, and what cannot be seen does not") {
  for (const char* text :
       {"conv 3x3\n\ty", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "a:b [c] #1 [x]"})
    CHECK(shown(text) == text);
  CHECK(shown("\x1b[2J\r\x07\x7f") == "?[2J???");
  CHECK(shown("\xc2\x9b"
              "2J") == "?2J");  // a control character of C1
  CHECK(shown("\xe2\x80\xae"
              "gnp") == "?gnp");  // turns the direction of text
  CHECK(shown("\xe2\x81\xa6\xd8\x9c\xef\xbb\xbf") == "???");
  CHECK(shown("\xf3\xa0\x81\x81") == "?");  // an invisible tag character
}

TEST_CASE("bytes that are no UTF-8 are shown each as one") {
  CHECK(shown("\x9b"
              "2J") == "?2J");
  CHECK(shown("\xc0\x9b") == "??");       // an overlong encoding
  CHECK(shown("\xed\xa0\x80") == "???");  // half of a surrogate pair
  CHECK(shown("\xf4\x90\x80\x80\xff") == "?????");
  CHECK(streamed({"\xe2\x80", "\xae"}) == "???");  // two names do not join to one character
}

TEST_CASE("no line is a command for the server of a build") {
  CHECK(shown("a\n::error::x") == "a\n?:error::x");
  CHECK(shown(":: x\n \t::set-output") == "?: x\n \t?:set-output");
  CHECK(streamed({"a\n", " ", "::error"}) == "a\n ?:error");
  CHECK(shown("a ##vso[task] ##[error] ##teamcity[x") == "a ##vso?task] ##?error] ##teamcity?x");
  CHECK(streamed({"#", "#", "vso", "["}) == "##vso?");
}

TEST_CASE("JSON keeps its values") {
  const std::string name = "a\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\x7f##vso[\n::error";
  const std::string text = Printable(true)(dump(Json::Object{{"name", name}}));
  CHECK(shown(text) == text);
  CHECK(text.find("\xe2\x80\xae") == std::string::npos);
  Expected<Json> read = parse_json(text, "text");
  REQUIRE(bool(read));
  CHECK((*read)["name"].text_or_empty() == name);
}

TEST_CASE("a name in a table stays in its line") { CHECK(fit("a\nb\tc", 10) == "a?b?c"); }
