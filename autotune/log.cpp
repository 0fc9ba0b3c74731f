// The file: opening, its tables, transactions. Records are log_records.cpp's.
#include "autotune/log.h"

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "autotune/log_statement.h"

namespace tw {
namespace {

constexpr int kSchema = 2, kApplication = 0x54774c67;  // "TwLg"
constexpr int kBusyMs = 60000;
constexpr int kMostBytes = 16 << 20;  // of a value: damaged files ask for no more
constexpr const char* kTable =
    "CREATE TABLE records (id TEXT PRIMARY KEY, task TEXT NOT NULL, target TEXT NOT NULL, threads "
    "INTEGER NOT NULL, regime TEXT NOT NULL, "
    "language INTEGER NOT NULL, algorithm TEXT NOT NULL, kernel TEXT NOT NULL, schedule TEXT NOT "
    "NULL, seconds TEXT NOT NULL, median REAL, "
    "status TEXT NOT NULL, error TEXT NOT NULL, device TEXT NOT NULL, tool TEXT NOT NULL, time "
    "INTEGER NOT NULL, about TEXT NOT NULL DEFAULT '') WITHOUT ROWID";
// What version 1 does not have
constexpr std::string_view kAbout = ", about TEXT NOT NULL DEFAULT ''";
constexpr const char* kIndex =
    "CREATE INDEX records_by_key ON records (task, target, threads, regime, language, median)";

}  // namespace

void TuningLog::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

TuningLog::TuningLog(std::string path, sqlite3* database)
    : path_(std::move(path)), database_(database) {}
TuningLog::TuningLog(TuningLog&&) noexcept = default;
TuningLog::~TuningLog() = default;

Error TuningLog::failed() const {
  sqlite3* database = database_.get();
  switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_NOTADB:
      return make_error(DiagCode::io, "'{0}' is no tuning log: it is not an SQLite file", path_);
    case SQLITE_CORRUPT:
      return make_error(DiagCode::io, "'{0}': this tuning log is damaged ({1})", path_,
                        sqlite3_errmsg(database));
    case SQLITE_BUSY:
      return make_error(DiagCode::io, "'{0}': other processes keep this tuning log locked", path_);
    default:
      return make_error(DiagCode::io, "'{0}': tuning log: {1}", path_, sqlite3_errmsg(database));
  }
}

Error TuningLog::run(const char* sql) {
  return sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK
             ? Error::success()
             : failed();
}

Expected<TuningLog::Statement> TuningLog::statement(const std::string& sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
    return failed();
  return Statement(made);
}

Error TuningLog::in_transaction(const char* begin, const std::function<Error()>& body) {
  TW_TRY(run(begin));
  Error error = body();
  if (!error) error = run("COMMIT");
  if (error) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  return error;
}

Expected<TuningLog> TuningLog::open(const std::string& path, Mode mode) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (fs::is_directory(path, code))
    return make_error(DiagCode::io, "'{0}' is no tuning log: it is a folder", path);
  if (mode == Mode::read && !fs::exists(path, code))
    return make_error(DiagCode::io, "there is no tuning log '{0}'", path);
  if (mode == Mode::write && fs::path(path).has_parent_path()) {
    fs::create_directories(fs::path(path).parent_path(), code);
    if (code)
      return make_error(DiagCode::io, "cannot make the folder of '{0}': {1}", path, code.message());
  }
  sqlite3* database = nullptr;
  const int flags = mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                        : SQLITE_OPEN_READWRITE;
  // Without SQLITE_OPEN_URI a name is only a name. A file that cannot be written is opened for
  // reading by SQLite itself.
  const int opened = sqlite3_open_v2(path.c_str(), &database, flags | SQLITE_OPEN_FULLMUTEX,
                                     nullptr);
  TuningLog log(path, database);
  if (opened != SQLITE_OK)
    return make_error(DiagCode::io, "cannot open the tuning log '{0}': {1}", path,
                      sqlite3_errmsg(database));
  TW_TRY(log.prepare_file(mode));
  return log;
}

// The file is a log of ours, or is made one. What it says about itself (views, triggers, functions
// in its schema) is not trusted.
Error TuningLog::prepare_file(Mode mode) {
  sqlite3* database = database_.get();
  sqlite3_busy_timeout(database, kBusyMs);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kMostBytes);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  TW_TRY(run("PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL"));
  // One state of the file, whatever others do to it
  TW_TRY(in_transaction("BEGIN", [&] { return check_schema(); }));
  if (mode == Mode::read) return Error::success();
  // Changing the journal's mode needs the file for itself, and SQLite does not wait for that.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMs);
  for (;;) {
    Error error = run("PRAGMA journal_mode = WAL");
    if (!error) break;
    if ((sqlite3_errcode(database) & 0xff) != SQLITE_BUSY ||
        std::chrono::steady_clock::now() > give_up)
      return error;
    llvm::consumeError(std::move(error));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return in_transaction(kWrite, [&]() -> Error {
    TW_ASSIGN(Statement tables, statement("SELECT count(*) FROM sqlite_schema"));
    if (tables.step() != SQLITE_ROW) return failed();
    const bool made = tables.integer(0) > 0;
    tables.reset();
    if (made) {  // by another process, or before
      TW_TRY(check_schema());
      if (!std::exchange(old_, false)) return Error::success();
      return run(("ALTER TABLE records ADD COLUMN " + std::string(kAbout.substr(2)) +
                  "; PRAGMA user_version = " + std::to_string(kSchema))
                     .c_str());
    }
    const std::string make = std::string(kTable) + "; " + kIndex +
                             "; PRAGMA application_id = " + std::to_string(kApplication) +
                             "; PRAGMA user_version = " + std::to_string(kSchema);
    empty_ = false;
    return run(make.c_str());
  });
}

// An empty file is a log with nothing in it yet.
Error TuningLog::check_schema() {
  TW_ASSIGN(Statement numbers,
            statement("SELECT (SELECT application_id FROM pragma_application_id), (SELECT "
                      "user_version FROM pragma_user_version)"));
  if (numbers.step() != SQLITE_ROW) return failed();
  const int64_t application = numbers.integer(0), version = numbers.integer(1);
  numbers.reset();
  TW_ASSIGN(Statement schema, statement("SELECT sql FROM sqlite_schema ORDER BY name"));
  std::vector<std::string> tables;
  int code = SQLITE_OK;
  while ((code = schema.step()) == SQLITE_ROW && tables.size() < 3)
    tables.push_back(schema.text(0));
  if (code != SQLITE_DONE && code != SQLITE_ROW) return failed();
  empty_ = tables.empty() && application == 0;
  if (empty_) return Error::success();
  if (application != kApplication)
    return make_error(DiagCode::io,
                      "'{0}' is no tuning log: it is an SQLite file of another program", path_);
  old_ = version == 1;
  if (version != kSchema && !old_)
    return make_error(DiagCode::io,
                      "'{0}': this tuning log has version {1}; this tilewright reads version {2}",
                      path_, version, kSchema);
  std::string table = kTable;
  if (old_) table.erase(table.find(kAbout), kAbout.size());
  if (tables != std::vector<std::string>{table, kIndex})
    return make_error(DiagCode::io,
                      "'{0}': this tuning log's tables are not those that tilewright makes", path_);
  return Error::success();
}

}  // namespace tw
