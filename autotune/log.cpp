#include "autotune/log.h"

#include <sqlite3.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

namespace tw {
namespace {

constexpr int kSchema = 1, kApplication = 0x54774c67;   // "TwLg"
constexpr int kBusyMs = 60000;
constexpr int kMostBytes = 16 << 20;                    // of a value: damaged files ask for no more
constexpr const char* kTable =
    "CREATE TABLE records (id TEXT PRIMARY KEY, task TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL, regime TEXT NOT NULL, "
    "language INTEGER NOT NULL, algorithm TEXT NOT NULL, kernel TEXT NOT NULL, schedule TEXT NOT NULL, seconds TEXT NOT NULL, median REAL, "
    "status TEXT NOT NULL, error TEXT NOT NULL, device TEXT NOT NULL, tool TEXT NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID";
constexpr const char* kIndex = "CREATE INDEX records_by_key ON records (task, target, threads, regime, language, median)";
constexpr const char* kColumns =
    "id, task, target, threads, regime, language, algorithm, kernel, schedule, seconds, median, status, error, device, tool, time";
constexpr const char* kOrder = " ORDER BY task, target, threads, regime, language, median IS NULL, median, id";

std::string samples_text(const std::vector<double>& seconds) {
  std::string text;
  char buffer[64];
  for (double s : seconds) text.append(text.empty() ? "" : " ").append(buffer, std::to_chars(buffer, buffer + sizeof buffer, s).ptr);
  return text;
}

std::optional<std::vector<double>> parse_samples(const std::string& text) {
  std::vector<double> out;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    double value = 0;
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec != std::errc() || (parsed.ptr != end && *parsed.ptr != ' ')) return std::nullopt;
    out.push_back(value);
    at = parsed.ptr == end ? end : parsed.ptr + 1;
  }
  return out;
}

}  // namespace

void TuningLog::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

// A prepared statement; the same one is used again after reset().
class TuningLog::Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  Statement(Statement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  void bind(int at, const std::string& text) { sqlite3_bind_text64(statement_, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8); }
  void bind(int at, int64_t value) { sqlite3_bind_int64(statement_, at, value); }
  void bind(int at, double value) { sqlite3_bind_double(statement_, at, value); }
  void bind_null(int at) { sqlite3_bind_null(statement_, at); }
  int step() { return sqlite3_step(statement_); }   // SQLITE_ROW, SQLITE_DONE or an error
  void reset() { sqlite3_reset(statement_); }
  int64_t integer(int column) { return sqlite3_column_int64(statement_, column); }
  double real(int column) { return sqlite3_column_double(statement_, column); }
  std::string text(int column) {
    const auto* bytes = sqlite3_column_text(statement_, column);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
  }

  // A row of kColumns. The identity is computed anew: whatever wrote the row, it is what add() would have written.
  Expected<Record> record(const std::string& file) {
    Record r;
    const auto seconds = parse_samples(text(9));
    const std::optional<Status> status = status_from_name(text(11));
    r.key = {text(1), text(2), static_cast<int>(integer(3)), text(4), static_cast<int>(integer(5))};
    r.algorithm = text(6);
    r.kernel_hash = text(7);
    r.schedule = text(8);
    r.seconds = seconds.value_or(std::vector<double>());
    r.status = status.value_or(Status::crashed);
    r.error = text(12);
    r.device = text(13);
    r.tool = text(14);
    r.time = integer(15);
    const bool same_median = r.seconds.empty() || median_seconds(r) == real(10);
    if (!seconds || !status || !same_median || record_id(r) != text(0))
      return make_error(DiagCode::io, "'{0}': the record {1} of this tuning log is damaged", file, text(0));
    return r;
  }

 private:
  sqlite3_stmt* statement_;
};

TuningLog::TuningLog(TuningLog&&) noexcept = default;
TuningLog::~TuningLog() = default;

Error TuningLog::failed() const {
  sqlite3* database = database_.get();
  switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_NOTADB: return make_error(DiagCode::io, "'{0}' is no tuning log: it is not an SQLite file", path_);
    case SQLITE_CORRUPT: return make_error(DiagCode::io, "'{0}': this tuning log is damaged ({1})", path_, sqlite3_errmsg(database));
    case SQLITE_BUSY: return make_error(DiagCode::io, "'{0}': other processes keep this tuning log locked", path_);
    default: return make_error(DiagCode::io, "'{0}': tuning log: {1}", path_, sqlite3_errmsg(database));
  }
}

Error TuningLog::run(const char* sql) {
  return sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK ? Error::success() : failed();
}

Expected<TuningLog::Statement> TuningLog::statement(const std::string& sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK) return failed();
  return Statement(made);
}

// IMMEDIATE: the lock is taken before anything is read, so that waiting for another writer cannot end in a deadlock.
Error TuningLog::in_transaction(const std::function<Error()>& body) {
  TW_TRY(run("BEGIN IMMEDIATE"));
  Error error = body();
  if (!error) error = run("COMMIT");
  if (error) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  return error;
}

Expected<TuningLog> TuningLog::open(const std::string& path, Mode mode) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (fs::is_directory(path, code)) return make_error(DiagCode::io, "'{0}' is no tuning log: it is a folder", path);
  if (mode == Mode::read && !fs::exists(path, code)) return make_error(DiagCode::io, "there is no tuning log '{0}'", path);
  if (mode == Mode::write && fs::path(path).has_parent_path()) {
    fs::create_directories(fs::path(path).parent_path(), code);
    if (code) return make_error(DiagCode::io, "cannot make the folder of '{0}': {1}", path, code.message());
  }
  sqlite3* database = nullptr;
  const int flags = mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
  // Without SQLITE_OPEN_URI a name is only a name. A file that cannot be written is opened for reading by SQLite itself.
  const int opened = sqlite3_open_v2(path.c_str(), &database, flags | SQLITE_OPEN_FULLMUTEX, nullptr);
  TuningLog log(path, database);
  if (opened != SQLITE_OK) return make_error(DiagCode::io, "cannot open the tuning log '{0}': {1}", path, sqlite3_errmsg(database));
  TW_TRY(log.prepare_file(mode));
  return log;
}

// The file is a log of ours, or is made one. What it says about itself (views, triggers, functions in its schema) is not trusted.
Error TuningLog::prepare_file(Mode mode) {
  sqlite3* database = database_.get();
  sqlite3_busy_timeout(database, kBusyMs);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kMostBytes);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  TW_TRY(run("PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL"));
  TW_TRY(check_schema());
  if (mode == Mode::read) return Error::success();
  // Changing the journal's mode needs the file for itself, and SQLite does not wait for that.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMs);
  for (;;) {
    Error error = run("PRAGMA journal_mode = WAL");
    if (!error) break;
    if ((sqlite3_errcode(database) & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() > give_up) return error;
    llvm::consumeError(std::move(error));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return in_transaction([&]() -> Error {
    TW_ASSIGN(Statement tables, statement("SELECT count(*) FROM sqlite_schema"));
    if (tables.step() != SQLITE_ROW) return failed();
    if (tables.integer(0) > 0) return check_schema();   // another process was first
    const std::string make = std::string(kTable) + "; " + kIndex + "; PRAGMA application_id = " + std::to_string(kApplication) +
                             "; PRAGMA user_version = " + std::to_string(kSchema);
    empty_ = false;
    return run(make.c_str());
  });
}

// An empty file is a log with nothing in it yet.
Error TuningLog::check_schema() {
  TW_ASSIGN(Statement numbers, statement("SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version)"));
  if (numbers.step() != SQLITE_ROW) return failed();
  const int64_t application = numbers.integer(0), version = numbers.integer(1);
  numbers.reset();
  TW_ASSIGN(Statement schema, statement("SELECT sql FROM sqlite_schema ORDER BY name"));
  std::vector<std::string> tables;
  int code = SQLITE_OK;
  while ((code = schema.step()) == SQLITE_ROW && tables.size() < 3) tables.push_back(schema.text(0));
  if (code != SQLITE_DONE && code != SQLITE_ROW) return failed();
  empty_ = tables.empty() && application == 0;
  if (empty_) return Error::success();
  if (application != kApplication) return make_error(DiagCode::io, "'{0}' is no tuning log: it is an SQLite file of another program", path_);
  if (version != kSchema)
    return make_error(DiagCode::io, "'{0}': this tuning log has version {1}; this tilewright reads version {2}", path_, version, kSchema);
  if (tables != std::vector<std::string>{kTable, kIndex})
    return make_error(DiagCode::io, "'{0}': this tuning log's tables are not those that tilewright makes", path_);
  return Error::success();
}

Expected<bool> TuningLog::insert(const Record& r) {
  TW_TRY(check(r));
  if (!insert_) {
    TW_ASSIGN(Statement made, statement(std::string("INSERT OR IGNORE INTO records (") + kColumns + ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
    insert_ = std::make_unique<Statement>(std::move(made));
  }
  Statement& s = *insert_;
  const std::string texts[] = {record_id(r), r.key.task, r.key.target, r.key.regime, r.algorithm, r.kernel_hash, r.schedule, samples_text(r.seconds),
                               status_name(r.status), r.error, r.device, r.tool};
  constexpr int at[] = {1, 2, 3, 5, 7, 8, 9, 10, 12, 13, 14, 15};
  for (size_t i = 0; i < std::size(texts); ++i) s.bind(at[i], texts[i]);
  s.bind(4, int64_t{r.key.threads});
  s.bind(6, int64_t{r.key.language});
  if (r.seconds.empty()) s.bind_null(11);
  else s.bind(11, median_seconds(r));
  s.bind(16, r.time);
  const bool done = s.step() == SQLITE_DONE;
  const bool added = done && sqlite3_changes(database_.get()) > 0;
  Error error = done ? Error::success() : failed();
  s.reset();
  if (error) return error;
  return added;
}

Expected<bool> TuningLog::add(const Record& record) {
  bool added = false;
  TW_TRY(in_transaction([&]() -> Error {
    TW_ASSIGN(added, insert(record));
    return Error::success();
  }));
  return added;
}

Expected<int64_t> TuningLog::add_all(const std::vector<Record>& records) {
  int64_t added = 0;
  TW_TRY(in_transaction([&]() -> Error {
    for (const Record& record : records) {
      TW_ASSIGN(const bool fresh, insert(record));
      added += fresh;
    }
    return Error::success();
  }));
  return added;
}

Expected<std::optional<Record>> TuningLog::best(const RecordKey& key, const std::string& kernel_hash) {
  if (empty_) return std::optional<Record>();
  TW_ASSIGN(Statement s, statement(std::string("SELECT ") + kColumns + " FROM records WHERE task = ? AND target = ? AND threads = ? AND regime = ? AND "
                                   "language = ? AND status = 'ok' AND (? = '' OR kernel = ?)" + kOrder + " LIMIT 1"));
  s.bind(1, key.task);
  s.bind(2, key.target);
  s.bind(3, int64_t{key.threads});
  s.bind(4, key.regime);
  s.bind(5, int64_t{key.language});
  s.bind(6, kernel_hash);
  s.bind(7, kernel_hash);
  const int code = s.step();
  if (code == SQLITE_DONE) return std::optional<Record>();
  if (code != SQLITE_ROW) return failed();
  TW_ASSIGN(Record record, s.record(path_));
  return std::optional<Record>(std::move(record));
}

Expected<int64_t> TuningLog::count() {
  if (empty_) return 0;
  TW_ASSIGN(Statement s, statement("SELECT count(*) FROM records"));
  if (s.step() != SQLITE_ROW) return failed();
  return s.integer(0);
}

Error TuningLog::each(const LogFilter& filter, const std::function<Error(const Record&)>& visit) {
  if (empty_) return Error::success();
  TW_ASSIGN(Statement s, statement(std::string("SELECT ") + kColumns + " FROM records WHERE (?1 = '' OR task = ?1) AND (?2 = '' OR target = ?2) AND "
                                   "(?3 = '' OR kernel = ?3) AND (?4 IS NULL OR threads = ?4) AND (?5 IS NULL OR language = ?5) AND (?6 = '' OR status = ?6)" + kOrder));
  s.bind(1, filter.task);
  s.bind(2, filter.target);
  s.bind(3, filter.kernel_hash);
  if (filter.threads) s.bind(4, int64_t{*filter.threads});
  if (filter.language) s.bind(5, int64_t{*filter.language});
  s.bind(6, std::string(filter.status ? status_name(*filter.status) : ""));
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW) {
    TW_ASSIGN(const Record record, s.record(path_));
    TW_TRY(visit(record));
  }
  return code == SQLITE_DONE ? Error::success() : failed();
}

Expected<std::vector<Record>> TuningLog::all(const LogFilter& filter) {
  std::vector<Record> out;
  TW_TRY(each(filter, [&](const Record& record) {
    out.push_back(record);
    return Error::success();
  }));
  return out;
}

Expected<int64_t> TuningLog::export_lines(const LogFilter& filter, const std::function<Error(const std::string& line)>& write) {
  int64_t count = 0;
  TW_TRY(each(filter, [&](const Record& record) {
    ++count;
    return write(print(record));
  }));
  return count;
}

Expected<int64_t> TuningLog::import_lines(std::string_view text, const std::string& file) {
  int64_t added = 0, line = 0;
  TW_TRY(in_transaction([&]() -> Error {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view one = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      ++line;
      if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      TW_ASSIGN(const Record record, parse_record(one, file + ":" + std::to_string(line)));
      TW_ASSIGN(const bool fresh, insert(record));
      added += fresh;
    }
    return Error::success();
  }));
  return added;
}

Expected<int64_t> TuningLog::merge(TuningLog& other) {
  TW_ASSIGN(const std::vector<Record> records, other.all());
  return add_all(records);
}

Expected<int64_t> TuningLog::prune(const PruneOptions& options) {
  const int before = sqlite3_total_changes(database_.get());
  TW_TRY(in_transaction([&]() -> Error {
    auto drop = [&](const char* where, int64_t value) -> Error {
      TW_ASSIGN(Statement s, statement(std::string("DELETE FROM records WHERE ") + where));
      s.bind(1, value);
      return s.step() == SQLITE_DONE ? Error::success() : failed();
    };
    if (options.other_languages) TW_TRY(drop("language != ?", kLanguageVersion));
    if (options.before) TW_TRY(drop("time < ?", *options.before));
    if (!options.keep) return Error::success();
    return drop("id NOT IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY task, target, threads, regime, language, kernel ORDER BY median, id) "
                "AS place FROM records WHERE status = 'ok') WHERE place <= ?)", *options.keep);
  }));
  return sqlite3_total_changes(database_.get()) - before;
}

Expected<std::vector<LogDifference>> diff(TuningLog& ours, TuningLog& theirs) {
  std::map<RecordKey, LogDifference> found;
  auto collect = [&](TuningLog& log, std::optional<Record> LogDifference::*side) {
    return log.each({.status = Status::ok}, [&](const Record& record) {
      std::optional<Record>& best = found.try_emplace(record.key, LogDifference{record.key, {}, {}}).first->second.*side;
      if (!best) best = record;   // the first of a key is its best
      return Error::success();
    });
  };
  TW_TRY(collect(ours, &LogDifference::ours));
  TW_TRY(collect(theirs, &LogDifference::theirs));
  std::vector<LogDifference> out;
  for (auto& [key, both] : found)
    if (both.ours != both.theirs) out.push_back(std::move(both));
  return out;
}

}  // namespace tw
