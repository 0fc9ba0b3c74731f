// SQLite files of the project's own kinds. Several processes may use one at once. A process that
// dies at any moment leaves every transaction that has ended.
#pragma once
#include <sqlite3.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/diag.h"

namespace tw::sql {

// read: the file must exist; write: it is made if it does not, with its folder
enum class Mode : uint8_t { read, write };

// The beginning of a writing transaction. It takes the lock before anything is read, so that
// waiting for another writer cannot end in a deadlock.
inline constexpr const char* kWrite = "BEGIN IMMEDIATE";

// A prepared statement; reset() makes it usable again.
class Statement {
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
  void bind_bytes(int at, std::string_view bytes) {
    sqlite3_bind_blob64(statement_, at, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  }
  int step() { return sqlite3_step(statement_); }  // SQLITE_ROW, SQLITE_DONE or an error
  void reset() { sqlite3_reset(statement_); }
  int64_t integer(int column) { return sqlite3_column_int64(statement_, column); }
  double real(int column) { return sqlite3_column_double(statement_, column); }
  bool is_null(int column) { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string text(int column) {  // or a blob
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
                 : std::string();
  }

 private:
  sqlite3_stmt* statement_;
};

// A kind of file, known by its application_id
struct Kind {
  const char* name;  // "tuning log", in messages
  int application;   // SQLite's application_id
};

// One thread at a time may use a database, and only one side of a fork.
class Database {
 public:
  // Views, triggers and functions in the file are not trusted. Errors: no such file, not an SQLite
  // file.
  static Expected<Database> open(const std::string& path, Mode mode, const Kind& kind);

  const std::string& path() const { return path_; }
  const char* kind() const { return kind_.name; }
  Error failed() const;  // SQLite's last error
  Error run(const std::string& sql);
  Expected<Statement> statement(const std::string& sql);
  // Runs `body` in a transaction that begins with `begin`. On an error nothing of it remains.
  Error in_transaction(const char* begin, const std::function<Error()>& body);
  // Makes readers and a writer independent of each other. Waits for exclusive use of the file if
  // needed.
  Error use_write_ahead_log();
  int64_t changes() const { return sqlite3_changes64(database_.get()); }  // rows of the last one
  int64_t total_changes() const { return sqlite3_total_changes64(database_.get()); }

  struct Schema {
    int64_t application = 0, version = 0;
    std::vector<std::string> tables;  // the statements that made them, in the order of the names
    bool empty() const { return tables.empty() && application == 0; }
  };
  // Errors: a file of another program.
  Expected<Schema> schema();
  // Marks the file with this kind and version.
  Error mark(int version);

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  Database(std::string path, const Kind& kind, sqlite3* database)
      : path_(std::move(path)), kind_(kind), database_(database) {}

  std::string path_;
  Kind kind_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace tw::sql
