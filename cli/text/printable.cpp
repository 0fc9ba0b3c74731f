#include "cli/text/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>

namespace tw {
namespace {

struct CodeRange {
  uint32_t first, last;
};
// Controls, and characters that have no width or change the direction of the text around them
constexpr CodeRange kHidden[] = {
    {0x00, 0x08},     {0x0b, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

bool is_hidden(uint32_t code) {
  return std::ranges::any_of(
      kHidden, [&](const CodeRange& range) { return range.first <= code && code <= range.last; });
}

struct Character {
  size_t bytes = 1;
  uint32_t code = 0;
  bool valid = false;
};

// The first character of UTF-8 text
Character first_character(std::string_view text) {
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead, true};
  const size_t bytes = lead >= 0xf8   ? 0
                       : lead >= 0xf0 ? 4
                       : lead >= 0xe0 ? 3
                       : lead >= 0xc0 ? 2
                                      : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  const bool valid = code >= kLeast[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? Character{bytes, code, true} : Character{};
}

std::string json_escape(uint32_t code) {
  char text[16];
  if (code < 0x10000) std::snprintf(text, sizeof text, "\\u%04x", code);
  else
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                  0xdc00 + (code & 0x3ff));
  return text;
}

}  // namespace

bool Printable::is_harmless(char c) {
  const bool begins = begins_line_, command = marks_ == 2 && c == '[';
  begins_line_ = c == '\n' || (begins && (c == ' ' || c == '\t'));
  if (c == '#') marks_ = std::min(marks_ + 1, 2);
  else if (!(marks_ == 2 && c >= 'a' && c <= 'z')) marks_ = 0;
  return !command && !(begins && c == ':');
}

std::string Printable::operator()(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    const bool shown = c.valid && !is_hidden(c.code) &&
                       is_harmless(c.bytes == 1 ? text[0] : '\x80');
    if (shown) out += text.substr(0, c.bytes);
    else out += in_json_ && c.valid ? json_escape(c.code) : "?";
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::streamsize PrintableStream::xsputn(const char* text, std::streamsize size) {
  const std::string shown = printable_({text, static_cast<size_t>(size)});
  return to_.write(shown.data(), static_cast<std::streamsize>(shown.size())) ? size : 0;
}

int PrintableStream::overflow(int c) {
  if (c == EOF) return 0;
  const char one = static_cast<char>(c);
  return xsputn(&one, 1) == 1 ? c : EOF;
}

int PrintableStream::sync() { return to_.flush() ? 0 : -1; }

}  // namespace tw
