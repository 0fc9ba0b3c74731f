// support/diag.h for the worker on boards, which has no LLVM. It has the parts that the measuring
// files use, under the same names, and comes before the compiler's own in the worker's include
// path.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/diag_code.h"

namespace tw {

class [[nodiscard]] Error {
 public:
  Error() = default;
  explicit Error(std::string text) : text_(std::move(text)) {}
  static Error success() { return {}; }
  explicit operator bool() const { return text_.has_value(); }
  const std::string& text() const { return *text_; }

 private:
  std::optional<std::string> text_;
};
inline std::string error_text(const Error& error) { return error ? error.text() : ""; }

template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  Error takeError() { return std::move(error_); }

 private:
  std::optional<T> value_;
  Error error_;
};

// Fills in "{0} of {1}": numbered places, without formats.
template <class... Args>
std::string formatted(const std::string& format, const Args&... args) {
  std::vector<std::string> words;
  const auto add = [&](const auto& value) {
    std::ostringstream text;
    text << value;
    words.push_back(text.str());
  };
  (add(args), ...);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    const size_t place = format[i] == '{' && i + 1 < format.size()
                             ? static_cast<size_t>(format[i + 1] - '0')
                             : words.size();
    if (place >= words.size()) {
      out += format[i];
      continue;
    }
    out += words[place];
    i = format.find('}', i);
  }
  return out;
}
template <class... Args>
Error make_error(DiagCode, const char* format, const Args&... args) {
  return Error(formatted(format, args...));
}
[[noreturn]] inline void check_failed(const char* condition) {
  std::fprintf(stderr, "internal error: %s\n", condition);
  std::abort();
}

}  // namespace tw

#define TW_CHECK(condition, ...)                      \
  do {                                                \
    if (!(condition)) ::tw::check_failed(#condition); \
  } while (false)
#define TW_UNREACHABLE(...) ::tw::check_failed("unreachable")
#define TW_TRY(expression)                                      \
  do {                                                          \
    if (::tw::Error tw_error_ = (expression)) return tw_error_; \
  } while (false)
#define TW_CONCAT_(a, b) a##b
#define TW_CONCAT(a, b) TW_CONCAT_(a, b)
#define TW_ASSIGN(target, expression) \
  TW_ASSIGN_(TW_CONCAT(tw_expected_, __LINE__), target, expression)
#define TW_ASSIGN_(name, target, expression) \
  auto name = (expression);                  \
  if (!name) return name.takeError();        \
  target = std::move(*name)
