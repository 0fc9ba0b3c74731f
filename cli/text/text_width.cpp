#include "cli/text/text_width.h"

#include <sys/ioctl.h>

#include <algorithm>

namespace tw {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }  // UTF-8

int columns_in(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(text, begins_character));
}

// The position at which the character with that number begins
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

std::string fit(std::string text, int columns) {
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, '?');
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
