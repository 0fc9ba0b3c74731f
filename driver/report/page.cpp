#include "driver/report/page.h"

#include <cstddef>
#include <string_view>

namespace tw {

// Written by runtime/embed.cmake: page.html, page.css, page.js
extern const unsigned char kReportPage0[], kReportPage1[], kReportPage2[];
extern const std::size_t kReportPage0Size, kReportPage1Size, kReportPage2Size;

namespace {

std::string_view part(const unsigned char* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
  const size_t at = text.find(mark);
  TW_CHECK(at != std::string::npos, "the page has no {0}", mark);
  text.replace(at, mark.size(), by);
}

}  // namespace

std::string script_text(const Json& value) {
  std::string text;
  for (const char c : dump(value, -1))
    if (c == '<') text += "\\u003c";  // only strings have it
    else text += c;
  return text;
}

std::string page(const Report& report) {
  std::string text(part(kReportPage0, kReportPage0Size));
  replace(text, "/*CSS*/", part(kReportPage1, kReportPage1Size));
  replace(text, "/*JS*/", part(kReportPage2, kReportPage2Size));
  replace(text, "/*DATA*/", script_text(to_json(report)));
  return text;
}

}  // namespace tw
