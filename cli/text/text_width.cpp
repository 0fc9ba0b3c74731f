#include "cli/text/text_width.h"

#include <sys/ioctl.h>

#include <algorithm>

namespace tw {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }  // UTF-8

int columns_in(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(text, begins_character));
}

// Where the character with that number begins.
size_t at_character(const std::string& text, int number) {
  size_t at = 0;
  while (at < text.size() && (number > 0 || !begins_character(text[at]))) {
    number -= begins_character(text[at]);
    ++at;
    while (at < text.size() && !begins_character(text[at])) ++at;
  }
  return at;
}

}  // namespace

int terminal_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) c = '?';
  return out;
}

std::streamsize PrintableStream::xsputn(const char* text, std::streamsize size) {
  const std::string shown = printable({text, static_cast<size_t>(size)});
  return to_.write(shown.data(), size) ? size : 0;
}

int PrintableStream::overflow(int c) {
  if (c == EOF) return 0;
  const char one = static_cast<char>(c);
  return xsputn(&one, 1) == 1 ? c : EOF;
}

int PrintableStream::sync() { return to_.flush() ? 0 : -1; }

std::string fit(const std::string& text, int columns) {
  const int have = columns_in(text);
  if (have <= columns) return text;
  const std::string gap = "..";
  const int kept = std::max(0, columns - static_cast<int>(gap.size())), front = (kept + 1) / 2;
  return text.substr(0, at_character(text, front)) +
         gap.substr(0, static_cast<size_t>(std::clamp(columns, 0, 2))) +
         text.substr(at_character(text, have - (kept - front)));
}

std::string column(const std::string& text, int columns) {
  std::string out = fit(text, columns);
  out.append(static_cast<size_t>(std::max(0, columns - columns_in(out))), ' ');
  return out;
}

}  // namespace tw
