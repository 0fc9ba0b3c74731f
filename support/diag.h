// User mistakes travel as llvm::Error / llvm::Expected that carry a list of Diags; compiler bugs go
// through TW_CHECK.
#pragma once
#include <llvm/Support/Error.h>
#include <llvm/Support/FormatVariadic.h>

#include <string>
#include <utility>
#include <vector>

#include "support/diag_code.h"

namespace tw {

using llvm::Error;
using llvm::Expected;

const char* diag_code_name(DiagCode code);  // "invalid-argument", "io", …

struct Location {
  std::string file;
  int line = 0, column = 0;  // 1-based; 0: unknown
};

struct Diag {
  DiagCode code = DiagCode::invalid_argument;
  std::string message;  // one sentence: what, where, what would be accepted
  Location where;
  std::vector<std::string> notes;  // further lines
};
std::string to_string(const Diag& diag);  // "file:line:col: message\n  note: …"

class DiagError : public llvm::ErrorInfo<DiagError> {
 public:
  static char ID;
  explicit DiagError(std::vector<Diag> list) : diags(std::move(list)) {}
  void log(llvm::raw_ostream& os) const override;
  std::error_code convertToErrorCode() const override;
  std::vector<Diag> diags;
};

Error make_error(Diag diag);
Error make_error(std::vector<Diag> diags);  // success when the list is empty
template <class... Args>
Error make_error(DiagCode code, const char* format, Args&&... args) {
  return make_error(Diag{code, llvm::formatv(format, std::forward<Args>(args)...).str(), {}, {}});
}
// Empties an error into its diags; foreign llvm errors become one Diag with code io.
std::vector<Diag> take_diags(Error error);
std::string error_text(Error error);  // all diags, a line each

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace tw

// A broken invariant of the compiler itself: prints where and aborts. The message is in
// llvm::formatv's form.
#define TW_CHECK(condition, ...)                                                            \
  do {                                                                                      \
    if (!(condition))                                                                       \
      ::tw::check_failed(__FILE__, __LINE__, #condition, llvm::formatv(__VA_ARGS__).str()); \
  } while (false)
#define TW_UNREACHABLE(...) \
  ::tw::check_failed(__FILE__, __LINE__, "unreachable", llvm::formatv(__VA_ARGS__).str())

// Early return of an error: TW_TRY(step()); TW_ASSIGN(auto x, make_x());
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
