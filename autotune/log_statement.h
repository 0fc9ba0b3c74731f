// The log's prepared statements; for its own files.
#pragma once
#include <sqlite3.h>

#include <utility>

#include "autotune/log.h"

namespace tw {

// How writing begins. The lock is taken before anything is read, so that waiting for another writer
// cannot end in a deadlock.
inline constexpr const char* kWrite = "BEGIN IMMEDIATE";

// A prepared statement; the same one is used again after reset().
class TuningLog::Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  Statement(Statement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  void bind(int at, const std::string& text) {
    sqlite3_bind_text64(statement_, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  void bind(int at, int64_t value) { sqlite3_bind_int64(statement_, at, value); }
  void bind(int at, double value) { sqlite3_bind_double(statement_, at, value); }
  void bind_null(int at) { sqlite3_bind_null(statement_, at); }
  int step() { return sqlite3_step(statement_); }  // SQLITE_ROW, SQLITE_DONE or an error
  void reset() { sqlite3_reset(statement_); }
  int64_t integer(int column) { return sqlite3_column_int64(statement_, column); }
  double real(int column) { return sqlite3_column_double(statement_, column); }
  std::string text(int column) {
    const auto* bytes = sqlite3_column_text(statement_, column);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes),
                               static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
                 : std::string();
  }

 private:
  sqlite3_stmt* statement_;
};

}  // namespace tw
