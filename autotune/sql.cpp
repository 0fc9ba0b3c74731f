#include "autotune/sql.h"

#include <chrono>
#include <filesystem>
#include <thread>

namespace tw::sql {
namespace {

constexpr int kBusyMs = 60000;
constexpr int kMostBytes = 64 << 20;  // largest value; a damaged file cannot ask for more
constexpr size_t kMostTables = 32;

}  // namespace

Error Database::failed() const {
  sqlite3* database = database_.get();
  switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_NOTADB:
      return make_error(DiagCode::io, "'{0}' is no {1}: it is not an SQLite file", path_,
                        kind_.name);
    case SQLITE_CORRUPT:
      return make_error(DiagCode::io, "'{0}': this {1} is damaged ({2})", path_, kind_.name,
                        sqlite3_errmsg(database));
    case SQLITE_BUSY:
      return make_error(DiagCode::io, "'{0}': other processes keep this {1} locked", path_,
                        kind_.name);
    default:
      return make_error(DiagCode::io, "'{0}': {1}: {2}", path_, kind_.name,
                        sqlite3_errmsg(database));
  }
}

Error Database::run(const std::string& sql) {
  return sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK
             ? Error::success()
             : failed();
}

Expected<Statement> Database::statement(const std::string& sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
    return failed();
  return Statement(made);
}

Error Database::in_transaction(const char* begin, const std::function<Error()>& body) {
  TW_TRY(run(begin));
  Error error = body();
  if (!error) error = run("COMMIT");
  if (error) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  return error;
}

Expected<Database> Database::open(const std::string& path, Mode mode, const Kind& kind) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (fs::is_directory(path, code))
    return make_error(DiagCode::io, "'{0}' is no {1}: it is a folder", path, kind.name);
  if (mode == Mode::read && !fs::exists(path, code))
    return make_error(DiagCode::io, "there is no {1} '{0}'", path, kind.name);
  if (mode == Mode::write && fs::path(path).has_parent_path()) {
    fs::create_directories(fs::path(path).parent_path(), code);
    if (code)
      return make_error(DiagCode::io, "cannot make the folder of '{0}': {1}", path, code.message());
  }
  sqlite3* made = nullptr;
  const int flags = mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                        : SQLITE_OPEN_READWRITE;
  // Without SQLITE_OPEN_URI a name is only a name. SQLite itself opens a file for reading if it
  // cannot write it.
  const int opened = sqlite3_open_v2(path.c_str(), &made, flags | SQLITE_OPEN_FULLMUTEX, nullptr);
  Database database(path, kind, made);
  if (opened != SQLITE_OK)
    return make_error(DiagCode::io, "cannot open the {2} '{0}': {1}", path, sqlite3_errmsg(made),
                      kind.name);
  sqlite3_busy_timeout(made, kBusyMs);
  sqlite3_limit(made, SQLITE_LIMIT_LENGTH, kMostBytes);
  sqlite3_db_config(made, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(made, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(made, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(made, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  TW_TRY(database.run("PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL"));
  return database;
}

// A change of the journal mode needs exclusive use of the file, and SQLite does not wait for that.
Error Database::use_write_ahead_log() {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMs);
  for (;;) {
    Error error = run("PRAGMA journal_mode = WAL");
    if (!error) return error;
    if ((sqlite3_errcode(database_.get()) & 0xff) != SQLITE_BUSY ||
        std::chrono::steady_clock::now() > give_up)
      return error;
    llvm::consumeError(std::move(error));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Expected<Database::Schema> Database::schema() {
  TW_ASSIGN(Statement numbers,
            statement("SELECT (SELECT application_id FROM pragma_application_id), (SELECT "
                      "user_version FROM pragma_user_version)"));
  if (numbers.step() != SQLITE_ROW) return failed();
  Schema out{numbers.integer(0), numbers.integer(1), {}};
  TW_ASSIGN(Statement rows,
            statement("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"));
  int code = SQLITE_OK;
  while ((code = rows.step()) == SQLITE_ROW && out.tables.size() < kMostTables)
    out.tables.push_back(rows.text(0));
  if (code != SQLITE_DONE && code != SQLITE_ROW) return failed();
  if (!out.empty() && out.application != kind_.application)
    return make_error(DiagCode::io, "'{0}' is no {1}: it is an SQLite file of another program",
                      path_, kind_.name);
  return out;
}

Error Database::mark(int version) {
  return run("PRAGMA application_id = " + std::to_string(kind_.application) +
             "; PRAGMA user_version = " + std::to_string(version));
}

}  // namespace tw::sql
