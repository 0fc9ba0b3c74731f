// Filters text that strangers have chosen, such as names in models, on its way to a terminal or
// into the log of a build: it moves no cursor, turns no text round, and gives a build's server no
// command.
#pragma once
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace tw {

// Puts '?' for characters that control something or cannot be seen: controls but ends of lines and
// tabs, marks of direction and of no width, bytes that are not UTF-8. So it does for a ':' that
// begins a line, as servers take "::error" for a command, and for the '[' of "##vso[" and the like.
class Printable {
 public:
  // `in_json`: strings of JSON keep their characters, by JSON's own escapes.
  explicit Printable(bool in_json = false) : in_json_(in_json) {}
  std::string operator()(std::string_view text);  // goes on where the last text ended

 private:
  bool is_harmless(char c);

  bool in_json_, begins_line_ = true;
  int marks_ = 0;  // number of '#' seen, of "##word["
};

// A stream that filters all that is written to it by Printable
class PrintableStream : private std::streambuf, public std::ostream {
 public:
  explicit PrintableStream(std::ostream& to) : std::ostream(this), to_(to) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int overflow(int c) override;
  int sync() override;
  Printable printable_;
  std::ostream& to_;
};

}  // namespace tw
