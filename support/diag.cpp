#include "support/diag.h"

#include <llvm/Support/raw_ostream.h>

#include <cstdio>
#include <cstdlib>

#include "support/repro.h"

namespace tw {

char DiagError::ID = 0;

const char* diag_code_name(DiagCode code) {
  switch (code) {
    case DiagCode::invalid_argument: return "invalid-argument";
    case DiagCode::io: return "io";
    case DiagCode::parse: return "parse";
    case DiagCode::invalid_model: return "invalid-model";
    case DiagCode::unsupported: return "unsupported";
    case DiagCode::illegal_schedule: return "illegal-schedule";
    case DiagCode::mismatch: return "mismatch";
    case DiagCode::limit: return "limit";
    case DiagCode::not_pinned: return "not-pinned";
    case DiagCode::damaged: return "damaged";
    case DiagCode::over_budget: return "over-budget";
  }
  TW_UNREACHABLE("bad code");
}

// Indents all lines but the first, so that a name with line ends in it cannot pass for a message of
// its own.
static std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return out;
}

std::string to_string(const Diag& diag) {
  std::string text;
  if (!diag.where.file.empty()) text += diag.where.file + ":";
  if (diag.where.line > 0)
    text += llvm::formatv("{0}:{1}:", diag.where.line, diag.where.column).str();
  if (!text.empty()) text += " ";
  text += indented(diag.message);
  for (const std::string& note : diag.notes) text += "\n  note: " + indented(note);
  return text;
}

void DiagError::log(llvm::raw_ostream& os) const {
  for (size_t i = 0; i < diags.size(); ++i) os << (i ? "\n" : "") << to_string(diags[i]);
}

std::error_code DiagError::convertToErrorCode() const { return llvm::inconvertibleErrorCode(); }

Error make_error(Diag diag) {
  std::vector<Diag> list;
  list.push_back(std::move(diag));
  return llvm::make_error<DiagError>(std::move(list));
}

Error make_error(std::vector<Diag> diags) {
  if (diags.empty()) return Error::success();
  return llvm::make_error<DiagError>(std::move(diags));
}

std::vector<Diag> take_diags(Error error) {
  std::vector<Diag> out;
  llvm::handleAllErrors(
      std::move(error),
      [&](DiagError& e) { out.insert(out.end(), e.diags.begin(), e.diags.end()); },
      [&](const llvm::ErrorInfoBase& e) { out.push_back({DiagCode::io, e.message(), {}, {}}); });
  return out;
}

std::string error_text(Error error) {
  std::string text;
  for (const Diag& diag : take_diags(std::move(error)))
    text += (text.empty() ? "" : "\n") + to_string(diag);
  return text;
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "tilewright: internal error at %s:%d: %s\n  %s\n", file, line, condition,
               message.c_str());
  std::string folder = write_reproducer();
  if (!folder.empty())
    std::fprintf(stderr, "  reproducer: %s/ (see docs/internals/debugging.md)\n", folder.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace tw
