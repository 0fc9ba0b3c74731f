// Writes records to the log and reads them back.
#include <charconv>
#include <map>

#include "autotune/log.h"

namespace tw {
namespace {

constexpr const char* kColumns =
    "id, task, target, threads, regime, language, algorithm, kernel, schedule, seconds, median, "
    "status, error, device, tool, time, about, rejected";
constexpr const char* kOrder =
    " ORDER BY task, target, threads, regime, language, median IS NULL, median, id";

std::string samples_text(const std::vector<double>& seconds) {
  std::string text;
  char buffer[64];
  for (double s : seconds)
    text.append(text.empty() ? "" : " ")
        .append(buffer, std::to_chars(buffer, buffer + sizeof buffer, s).ptr);
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

// The record in a row of kColumns. The identity is computed anew, so it is the one that add() would
// write, whoever wrote the row.
Expected<Record> record_of(sql::Statement& row, const std::string& file) {
  Record r;
  const auto seconds = parse_samples(row.text(9));
  const std::optional<Status> status = status_from_name(row.text(11));
  r.key = {row.text(1), row.text(2), static_cast<int>(row.integer(3)), row.text(4),
           static_cast<int>(row.integer(5))};
  r.algorithm = row.text(6);
  r.kernel_hash = row.text(7);
  r.schedule = row.text(8);
  r.seconds = seconds.value_or(std::vector<double>());
  r.status = status.value_or(Status::crashed);
  r.error = row.text(12);
  r.device = row.text(13);
  r.tool = row.text(14);
  r.time = row.integer(15);
  r.about = row.text(16);
  r.rejected = row.integer(17) != 0;
  Error unsound = check(r);
  const bool sound = seconds && status && !unsound &&
                     (r.seconds.empty() || median_seconds(r) == row.real(10)) &&
                     record_id(r) == row.text(0);
  llvm::consumeError(std::move(unsound));
  if (!sound)
    return make_error(DiagCode::io, "'{0}': the record {1} of this tuning log is damaged", file,
                      row.text(0));
  return r;
}

}  // namespace

std::string TuningLog::columns() const {
  const std::string all = kColumns;
  if (version_ > 3) return all;
  const std::string about = version_ == 1 ? "'' AS about" : "about";
  return all.substr(0, all.rfind("about")) + about + ", 0 AS rejected";
}

std::string TuningLog::counts() const {
  const bool marks = version_ > 3;
  return std::string(marks ? "rejected = 0 AND " : "") +
         "NOT EXISTS (SELECT 1 FROM records newer WHERE newer.task = records.task AND newer.target "
         "= records.target AND newer.threads = records.threads AND newer.regime = records.regime "
         "AND newer.language = records.language AND newer.status = 'ok' AND newer.kernel = "
         "records.kernel AND newer.schedule = records.schedule " +
         (marks ? "AND newer.rejected = 0 " : "") +
         "AND (newer.time > records.time OR (newer.time = records.time AND newer.median > "
         "records.median)))";
}

Expected<bool> TuningLog::insert(const Record& r) {
  TW_TRY(check(r));
  if (!insert_) {
    TW_ASSIGN(sql::Statement made,
              database_.statement(std::string("INSERT OR IGNORE INTO records (") + kColumns +
                                  ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
    insert_ = std::make_unique<sql::Statement>(std::move(made));
  }
  sql::Statement& s = *insert_;
  const std::string texts[] = {
      record_id(r),          r.key.task,    r.key.target, r.key.regime,
      r.algorithm,           r.kernel_hash, r.schedule,   samples_text(r.seconds),
      status_name(r.status), r.error,       r.device,     r.tool};
  constexpr int at[] = {1, 2, 3, 5, 7, 8, 9, 10, 12, 13, 14, 15};
  for (size_t i = 0; i < std::size(texts); ++i) s.bind(at[i], texts[i]);
  s.bind(4, int64_t{r.key.threads});
  s.bind(6, int64_t{r.key.language});
  if (r.seconds.empty()) s.bind_null(11);
  else s.bind(11, median_seconds(r));
  s.bind(16, r.time);
  s.bind(17, r.about);
  s.bind(18, int64_t{r.rejected});
  const bool done = s.step() == SQLITE_DONE;
  const bool added = done && database_.changes() > 0;
  Error error = done ? Error::success() : database_.failed();
  s.reset();
  if (error) return error;
  if (added) added_.insert(texts[0]);
  if (!added && r.rejected) TW_TRY(set_rejected(texts[0], true).takeError());  // a mark goes along
  // The record exists already. When two logs have different texts about it, both keep the same one:
  // the greater.
  if (!added && !r.about.empty()) {
    TW_ASSIGN(sql::Statement tell,
              database_.statement("UPDATE records SET about = ? WHERE id = ? AND about < ?"));
    tell.bind(1, r.about);
    tell.bind(2, record_id(r));
    tell.bind(3, r.about);
    if (tell.step() != SQLITE_DONE) return database_.failed();
  }
  return added;
}

// True: the mark was another one before.
Expected<bool> TuningLog::set_rejected(const std::string& id, bool rejected) {
  TW_ASSIGN(sql::Statement s,
            database_.statement("UPDATE records SET rejected = ? WHERE id = ? AND rejected != ?"));
  s.bind(1, int64_t{rejected});
  s.bind(2, id);
  s.bind(3, int64_t{rejected});
  if (s.step() != SQLITE_DONE) return database_.failed();
  return database_.changes() > 0;
}

Expected<int64_t> TuningLog::mark(const std::vector<std::string>& ids, bool rejected) {
  int64_t changed = 0;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    for (const std::string& id : ids) {
      TW_ASSIGN(const bool one, set_rejected(id, rejected));
      changed += one;
    }
    return Error::success();
  }));
  return changed;
}

Expected<bool> TuningLog::add(const Record& record) {
  bool added = false;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    TW_ASSIGN(added, insert(record));
    return Error::success();
  }));
  return added;
}

Expected<int64_t> TuningLog::add_all(const std::vector<Record>& records) {
  int64_t added = 0;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    for (const Record& record : records) {
      TW_ASSIGN(const bool fresh, insert(record));
      added += fresh;
    }
    return Error::success();
  }));
  return added;
}

Expected<std::optional<Record>> TuningLog::best(const RecordKey& key,
                                                const std::string& kernel_hash) {
  if (version_ == 0) return std::optional<Record>();
  TW_ASSIGN(sql::Statement s,
            database_.statement(
                "SELECT " + columns() +
                " FROM records WHERE task = ? AND target = ? AND threads = ? AND regime = ? AND "
                "language = ? AND status = 'ok' AND (? = '' OR kernel = ?) AND " +
                counts() + kOrder + " LIMIT 1"));
  s.bind(1, key.task);
  s.bind(2, key.target);
  s.bind(3, int64_t{key.threads});
  s.bind(4, key.regime);
  s.bind(5, int64_t{key.language});
  s.bind(6, kernel_hash);
  s.bind(7, kernel_hash);
  const int code = s.step();
  if (code == SQLITE_DONE) return std::optional<Record>();
  if (code != SQLITE_ROW) return database_.failed();
  TW_ASSIGN(Record record, record_of(s, path()));
  return std::optional<Record>(std::move(record));
}

Expected<int64_t> TuningLog::count() {
  if (version_ == 0) return 0;
  TW_ASSIGN(sql::Statement s, database_.statement("SELECT count(*) FROM records"));
  if (s.step() != SQLITE_ROW) return database_.failed();
  return s.integer(0);
}

Expected<Record> TuningLog::find(const std::string& id) {
  constexpr const char* kNone = "'{0}': no record's identity begins with '{1}'";
  if (version_ == 0) return make_error(DiagCode::invalid_argument, kNone, path(), id);
  TW_ASSIGN(sql::Statement s,
            database_.statement("SELECT " + columns() +
                                " FROM records WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2"));
  s.bind(1, id);
  const int code = s.step();
  if (code == SQLITE_DONE) return make_error(DiagCode::invalid_argument, kNone, path(), id);
  if (code != SQLITE_ROW) return database_.failed();
  TW_ASSIGN(Record record, record_of(s, path()));
  if (s.step() == SQLITE_ROW)
    return make_error(DiagCode::invalid_argument,
                      "'{0}': several records' identities begin with '{1}'", path(), id);
  return record;
}

Error TuningLog::each(const LogFilter& filter, const std::function<Error(const Record&)>& visit) {
  if (version_ == 0 || (version_ < 4 && filter.rejected == true)) return Error::success();
  TW_ASSIGN(sql::Statement s,
            database_.statement(
                "SELECT " + columns() +
                " FROM records WHERE (?1 = '' OR task = ?1) AND (?2 = '' OR target = ?2) AND "
                "(?3 = '' OR kernel = ?3) AND (?4 IS NULL OR threads = ?4) AND (?5 IS NULL "
                "OR language = ?5) AND "
                "(?6 = '' OR status = ?6)" +
                std::string(version_ > 3 ? " AND (?7 IS NULL OR rejected = ?7)" : "") + kOrder));
  s.bind(1, filter.task);
  s.bind(2, filter.target);
  s.bind(3, filter.kernel_hash);
  if (filter.threads) s.bind(4, int64_t{*filter.threads});
  if (filter.language) s.bind(5, int64_t{*filter.language});
  s.bind(6, std::string(filter.status ? status_name(*filter.status) : ""));
  if (filter.rejected && version_ > 3) s.bind(7, int64_t{*filter.rejected});
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW) {
    TW_ASSIGN(const Record record, record_of(s, path()));
    TW_TRY(visit(record));
  }
  return code == SQLITE_DONE ? Error::success() : database_.failed();
}

Expected<std::vector<Record>> TuningLog::best_of_kernels(const std::string& target, int threads,
                                                         const std::string& about, int least) {
  std::vector<Record> out;
  if (version_ < 2) return out;
  // With min(), SQLite takes the other columns from the row that has the least.
  TW_ASSIGN(sql::Statement s,
            database_.statement(
                "SELECT " + columns() +
                ", min(median) FROM records WHERE target = ? AND threads = ? AND regime = ? AND "
                "language = ? AND "
                "status = 'ok' AND about LIKE ? AND " +
                counts() + " GROUP BY task, kernel HAVING count(*) >= ? ORDER BY task, kernel"));
  s.bind(1, target);
  s.bind(2, int64_t{threads});
  s.bind(3, RecordKey().regime);
  s.bind(4, int64_t{kLanguageVersion});
  s.bind(5, about);
  s.bind(6, int64_t{least});
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW) {
    TW_ASSIGN(Record record, record_of(s, path()));
    out.push_back(std::move(record));
  }
  if (code != SQLITE_DONE) return database_.failed();
  return out;
}

Expected<std::vector<Record>> TuningLog::all(const LogFilter& filter) {
  std::vector<Record> out;
  TW_TRY(each(filter, [&](const Record& record) {
    out.push_back(record);
    return Error::success();
  }));
  return out;
}

Expected<int64_t> TuningLog::prune(const PruneOptions& options) {
  const int64_t before = database_.total_changes();
  int64_t dropped = 0;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    auto drop = [&](const std::string& where, int64_t value) -> Error {
      TW_ASSIGN(sql::Statement s, database_.statement("DELETE FROM records WHERE " + where));
      s.bind(1, value);
      return s.step() == SQLITE_DONE ? Error::success() : database_.failed();
    };
    if (options.other_languages) TW_TRY(drop("language != ?", kLanguageVersion));
    if (options.before) TW_TRY(drop("time < ?", *options.before));
    if (options.keep)
      TW_TRY(
          drop(std::string("id NOT IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY "
                           "task, target, threads, regime, language, kernel ORDER BY median, id) "
                           "AS place FROM records WHERE status = 'ok' AND ") +
                   counts() + ") WHERE place <= ?)",
               *options.keep));
    dropped = database_.total_changes() - before;
    // Drops texts that no record refers to.
    return database_.run(
        "DELETE FROM kernels WHERE key NOT IN (SELECT kernel FROM records); DELETE FROM tasks "
        "WHERE "
        "key NOT IN (SELECT task FROM records)");
  }));
  return dropped;
}

Expected<std::vector<LogDifference>> diff(TuningLog& ours, TuningLog& theirs) {
  std::map<RecordKey, LogDifference> found;
  auto collect = [&](TuningLog& log, std::optional<Record> LogDifference::* side) -> Error {
    TW_ASSIGN(std::vector<Record> records, log.all({.status = Status::ok, .rejected = false}));
    for (Record& record : latest(std::move(records))) {
      std::optional<Record>& best =
          found.try_emplace(record.key, LogDifference{record.key, {}, {}}).first->second.*side;
      if (!best) best = std::move(record);  // the first record of a key is its best
    }
    return Error::success();
  };
  TW_TRY(collect(ours, &LogDifference::ours));
  TW_TRY(collect(theirs, &LogDifference::theirs));
  std::vector<LogDifference> out;
  for (auto& [key, both] : found)
    if (both.ours != both.theirs) out.push_back(std::move(both));
  return out;
}

}  // namespace tw
