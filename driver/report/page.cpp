#include "driver/report/page.h"

#include <cstddef>
#include <string_view>

namespace tw {

// Written by runtime/embed.cmake: page.html, page.css, page.js, graph.js, model.js, tune.js
#define TW_PART(n)                             \
  extern const unsigned char kReportPage##n[]; \
  extern const std::size_t kReportPage##n##Size;
TW_PART(0)
TW_PART(1)
TW_PART(2)
TW_PART(3)
TW_PART(4)
TW_PART(5)
#undef TW_PART

namespace {

std::string_view part(const unsigned char* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
  const size_t at = text.find(mark);
  TW_CHECK(at != std::string::npos, "the page has no {0}", mark);
  text.replace(at, mark.size(), by);
}

std::string document(const Json& data, std::string_view script) {
  std::string text(part(kReportPage0, kReportPage0Size));
  replace(text, "/*CSS*/", part(kReportPage1, kReportPage1Size));
  replace(text, "/*JS*/", script);
  replace(text, "/*DATA*/", script_text(data));
  return text;
}

}  // namespace

std::string script_text(const Json& value) {
  std::string text;
  for (const char c : dump(value, -1))
    if (c == '<') text += "\\u003c";  // only strings contain it
    else text += c;
  return text;
}

std::string page(const Report& report) {
  return document(to_json(report), std::string(part(kReportPage2, kReportPage2Size)) +
                                       std::string(part(kReportPage3, kReportPage3Size)) +
                                       std::string(part(kReportPage4, kReportPage4Size)));
}

std::string page(const TuneReport& report) {
  return document(to_json(report), std::string(part(kReportPage2, kReportPage2Size)) +
                                       std::string(part(kReportPage5, kReportPage5Size)));
}

}  // namespace tw
