// Tables that fit where they are read.
#pragma once
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace tw {

constexpr int kPlainColumns = 100;     // of a file or a pipe
int terminal_columns(int descriptor);  // 0: it is no terminal, or one that does not say

// The text in so many columns: what is too long is cut in its middle, "conv 64x56..3x3 relu"; never
// inside of a character.
std::string fit(const std::string& text, int columns);
// The same, filled up with spaces.
std::string column(const std::string& text, int columns);

// Names come from models: what would move a terminal's cursor or change its colours is '?'. Ends of
// lines and tabs stay.
std::string printable(std::string_view text);
// Writes all that it is given so.
class PrintableStream : private std::streambuf, public std::ostream {
 public:
  explicit PrintableStream(std::ostream& to) : std::ostream(this), to_(to) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int overflow(int c) override;
  int sync() override;
  std::ostream& to_;
};

}  // namespace tw
