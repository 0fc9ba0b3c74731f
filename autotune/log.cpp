// The log's file: opening it, its tables and their versions. log_records.cpp handles records.
#include "autotune/log.h"

#include <array>
#include <utility>

namespace tw {
namespace {

constexpr int kSchema = 4;
constexpr sql::Kind kKind = {"tuning log", 0x54774c67};  // "TwLg"
constexpr const char* kTable =
    "CREATE TABLE records (id TEXT PRIMARY KEY, task TEXT NOT NULL, target TEXT NOT NULL, threads "
    "INTEGER NOT NULL, regime TEXT NOT NULL, "
    "language INTEGER NOT NULL, algorithm TEXT NOT NULL, kernel TEXT NOT NULL, schedule TEXT NOT "
    "NULL, seconds TEXT NOT NULL, median REAL, "
    "status TEXT NOT NULL, error TEXT NOT NULL, device TEXT NOT NULL, tool TEXT NOT NULL, time "
    "INTEGER NOT NULL, about TEXT NOT NULL DEFAULT '', rejected INTEGER NOT NULL DEFAULT 0) "
    "WITHOUT "
    "ROWID";
// The column that version 1 lacks, and the one that versions 1 to 3 lack
constexpr std::string_view kAbout = ", about TEXT NOT NULL DEFAULT ''",
                           kRejected = ", rejected INTEGER NOT NULL DEFAULT 0";
constexpr const char* kIndex =
    "CREATE INDEX records_by_key ON records (task, target, threads, regime, language, median)";
// The tables that versions 1 and 2 lack
constexpr const char* kKernels = "CREATE TABLE kernels (key TEXT PRIMARY KEY, text TEXT NOT NULL)";
constexpr const char* kTasks = "CREATE TABLE tasks (key TEXT PRIMARY KEY, text TEXT NOT NULL)";

}  // namespace

TuningLog::TuningLog(TuningLog&&) noexcept = default;
TuningLog::~TuningLog() = default;

Expected<TuningLog> TuningLog::open(const std::string& path, Mode mode) {
  TW_ASSIGN(sql::Database database, sql::Database::open(path, mode, kKind));
  TuningLog log(std::move(database));
  TW_TRY(log.prepare_file(mode));
  return log;
}

// Checks that the file is a tuning log, or makes it one.
Error TuningLog::prepare_file(Mode mode) {
  // A transaction, so that the check sees one state of the file, whatever others do to it.
  TW_TRY(database_.in_transaction("BEGIN", [&] { return check_schema(); }));
  if (mode == Mode::read) return Error::success();
  TW_TRY(database_.use_write_ahead_log());
  return database_.in_transaction(sql::kWrite, [&]() -> Error {
    TW_TRY(check_schema());  // another process, or an earlier run, may have made the tables
    return version_ == kSchema ? Error::success() : make_tables();
  });
}

Error TuningLog::make_tables() {
  const auto add_column = [&](std::string_view column) {
    return database_.run("ALTER TABLE records ADD COLUMN " + std::string(column.substr(2)));
  };
  if (version_ == 0) TW_TRY(database_.run(std::string(kTable) + "; " + kIndex));
  if (version_ == 1) TW_TRY(add_column(kAbout));
  if (version_ > 0) TW_TRY(add_column(kRejected));
  if (version_ < 3) TW_TRY(database_.run(std::string(kKernels) + "; " + kTasks));
  version_ = kSchema;
  return database_.mark(kSchema);
}

// Checks the tables. An empty file counts as an empty log.
Error TuningLog::check_schema() {
  TW_ASSIGN(const sql::Database::Schema schema, database_.schema());
  version_ = 0;
  if (schema.empty()) return Error::success();
  if (schema.version < 1 || schema.version > kSchema)
    return make_error(DiagCode::io,
                      "'{0}': this tuning log has version {1}; this tilewright reads version {2}",
                      path(), schema.version, kSchema);
  std::string table = kTable;
  if (schema.version < 4) table.erase(table.find(kRejected), kRejected.size());
  if (schema.version == 1) table.erase(table.find(kAbout), kAbout.size());
  std::vector<std::string> tables = {table, kIndex};
  if (schema.version > 2) tables = {kKernels, table, kIndex, kTasks};
  if (schema.tables != tables)
    return make_error(DiagCode::io,
                      "'{0}': this tuning log's tables are not those that tilewright makes",
                      path());
  version_ = schema.version;
  return Error::success();
}

}  // namespace tw
