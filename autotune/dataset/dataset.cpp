#include "autotune/dataset/dataset.h"

#include <algorithm>
#include <array>

#include "support/hash.h"

namespace tw {
namespace {

constexpr int kVersion = 2;
constexpr sql::Kind kKind = {"data set", 0x54775374};  // "TwSt"
constexpr std::array<const char*, kSplitCount> kSplits = {"train", "validation", "test", "near"};
constexpr std::array<const char*, kProgramSourceCount> kSources = {
    "default", "uniform", "search", "neighbour", "product", "predicted"};
constexpr std::array<const char*, kLabelKindCount> kLabelKinds = {"time", "cycles", "estimate"};

// Statements in the order of the tables' names
constexpr std::array<const char*, 7> kTables = {
    "CREATE TABLE claims (platform INTEGER NOT NULL, task INTEGER NOT NULL, holder TEXT NOT NULL, "
    "until INTEGER NOT NULL, PRIMARY KEY (platform, task)) WITHOUT ROWID",
    "CREATE TABLE kernels (key TEXT PRIMARY KEY, text TEXT NOT NULL)",
    "CREATE TABLE labels (platform INTEGER NOT NULL, program INTEGER NOT NULL, pass INTEGER NOT "
    "NULL, status INTEGER NOT NULL, least REAL NOT NULL, median REAL NOT NULL, samples INTEGER NOT "
    "NULL, contended INTEGER NOT NULL, code TEXT NOT NULL, time INTEGER NOT NULL, PRIMARY KEY "
    "(platform, program, pass)) WITHOUT ROWID",
    "CREATE TABLE platforms (id INTEGER PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, "
    "machine TEXT NOT NULL, threads INTEGER NOT NULL, kind INTEGER NOT NULL)",
    "CREATE TABLE programs (id INTEGER PRIMARY KEY, task INTEGER NOT NULL, source INTEGER NOT "
    "NULL, schedule TEXT NOT NULL)",
    "CREATE INDEX programs_by_task ON programs (task)",
    "CREATE TABLE tasks (id INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL, kind TEXT "
    "NOT NULL, network TEXT NOT NULL, lowered_for TEXT NOT NULL, algorithm INTEGER NOT NULL, text "
    "TEXT NOT NULL, kernel TEXT NOT NULL, flops REAL NOT NULL, split INTEGER NOT NULL, complete "
    "INTEGER NOT NULL, UNIQUE (key, lowered_for, algorithm))"};

template <class Enum, size_t N>
std::optional<Enum> by_name(const std::array<const char*, N>& words, std::string_view name) {
  const auto at = std::ranges::find(words, name);
  return at == words.end() ? std::nullopt : std::optional(static_cast<Enum>(at - words.begin()));
}

template <class Enum>
Enum of_row(int64_t value, int count) {
  return static_cast<Enum>(value >= 0 && value < count ? value : 0);
}

LearningTask task_of(sql::Statement& row) {
  LearningTask t;
  t.id = row.integer(0), t.key = row.text(1), t.name = row.text(2), t.kind = row.text(3);
  t.network = row.text(4), t.lowered_for = row.text(5), t.kernel = row.text(6);
  t.flops = row.real(7);
  t.split = of_row<Split>(row.integer(8), kSplitCount);
  t.complete = row.integer(9) != 0;
  t.algorithm = of_row<Algorithm>(row.integer(10), kAlgorithmCount);
  return t;
}
constexpr const char* kTaskColumns =
    "id, key, name, kind, network, lowered_for, kernel, flops, split, complete, algorithm";

LearningProgram program_of(sql::Statement& row) {
  return {row.integer(0), of_row<ProgramSource>(row.integer(1), kProgramSourceCount), row.text(2)};
}

}  // namespace

const char* split_name(Split split) { return kSplits[static_cast<size_t>(split)]; }
std::optional<Split> split_from_name(std::string_view name) {
  return by_name<Split>(kSplits, name);
}
const char* source_name(ProgramSource source) { return kSources[static_cast<size_t>(source)]; }
const char* label_kind_name(LabelKind kind) { return kLabelKinds[static_cast<size_t>(kind)]; }

int64_t program_id(const LearningTask& task, const std::string& schedule) {
  std::string text = task.key + "\n";
  if (task.algorithm != Algorithm::direct)
    text += std::string(algorithm_name(task.algorithm)) + "\n";
  return static_cast<int64_t>(std::stoull(sha256_hex(text + schedule).substr(0, 15), nullptr, 16));
}

std::string platform_text(const Platform& p) {
  return p.name + ", " + std::to_string(p.threads) + (p.threads == 1 ? " thread" : " threads") +
         (p.kind == LabelKind::time ? "" : std::string(", ") + label_kind_name(p.kind)) + ", on " +
         p.machine;
}

Expected<DataSet> DataSet::open(const std::string& path, sql::Mode mode) {
  TW_ASSIGN(sql::Database database, sql::Database::open(path, mode, kKind));
  DataSet set(std::move(database));
  TW_TRY(set.prepare(mode));
  return set;
}

Error DataSet::prepare(sql::Mode mode) {
  if (mode == sql::Mode::write) TW_TRY(database_.use_write_ahead_log());
  return database_.in_transaction(mode == sql::Mode::write ? sql::kWrite : "BEGIN", [&]() -> Error {
    TW_ASSIGN(const sql::Database::Schema schema, database_.schema());
    if (schema.empty() && mode == sql::Mode::write) {
      for (const char* table : kTables) TW_TRY(database_.run(table));
      return database_.mark(kVersion);
    }
    if (schema.version != kVersion)
      return make_error(DiagCode::io,
                        "'{0}': this data set has version {1}; this tilewright reads version {2}",
                        path(), schema.version, kVersion);
    if (!std::ranges::equal(schema.tables, kTables))
      return make_error(DiagCode::io,
                        "'{0}': this data set's tables are not those that tilewright makes",
                        path());
    return Error::success();
  });
}

Expected<bool> DataSet::add(const LearningTask& t) {
  bool added = false;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    TW_ASSIGN(sql::Statement s,
              database_.statement("INSERT OR IGNORE INTO tasks (key, name, kind, network, "
                                  "lowered_for, text, kernel, flops, split, algorithm, "
                                  "complete) VALUES (?,?,?,?,?,?,?,?,?,?,0)"));
    const std::string* texts[] = {&t.key,         &t.name, &t.kind,  &t.network,
                                  &t.lowered_for, &t.text, &t.kernel};
    for (size_t i = 0; i < std::size(texts); ++i) s.bind(static_cast<int>(i) + 1, *texts[i]);
    s.bind(8, t.flops);
    s.bind(9, static_cast<int64_t>(t.split));
    s.bind(10, static_cast<int64_t>(t.algorithm));
    if (s.step() != SQLITE_DONE) return database_.failed();
    added = database_.changes() > 0;
    TW_ASSIGN(sql::Statement kernel,
              database_.statement("INSERT OR IGNORE INTO kernels (key, text) VALUES (?, ?)"));
    kernel.bind(1, t.kernel);
    kernel.bind(2, t.kernel_text);
    return kernel.step() == SQLITE_DONE ? Error::success() : database_.failed();
  }));
  return added;
}

Expected<std::vector<LearningTask>> DataSet::tasks() {
  TW_ASSIGN(sql::Statement s,
            database_.statement(std::string("SELECT ") + kTaskColumns + " FROM tasks ORDER BY id"));
  std::vector<LearningTask> out;
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW) out.push_back(task_of(s));
  if (code != SQLITE_DONE) return database_.failed();
  return out;
}

Expected<LearningTask> DataSet::task(int64_t id) {
  TW_ASSIGN(sql::Statement s,
            database_.statement(std::string("SELECT ") + kTaskColumns +
                                ", text, (SELECT text FROM kernels WHERE key = kernel) FROM tasks "
                                "WHERE id = ?"));
  s.bind(1, id);
  const int code = s.step();
  if (code == SQLITE_DONE)
    return make_error(DiagCode::invalid_argument, "'{0}' has no task {1}", path(), id);
  if (code != SQLITE_ROW) return database_.failed();
  LearningTask t = task_of(s);
  t.text = s.text(11), t.kernel_text = s.text(12);
  return t;
}

Error DataSet::set_split(int64_t task, Split split) {
  TW_ASSIGN(sql::Statement s, database_.statement("UPDATE tasks SET split = ? WHERE id = ?"));
  s.bind(1, static_cast<int64_t>(split));
  s.bind(2, task);
  return s.step() == SQLITE_DONE ? Error::success() : database_.failed();
}

Error DataSet::set_complete(int64_t task) {
  TW_ASSIGN(sql::Statement s, database_.statement("UPDATE tasks SET complete = 1 WHERE id = ?"));
  s.bind(1, task);
  return s.step() == SQLITE_DONE ? Error::success() : database_.failed();
}

Error DataSet::add_programs(int64_t task, const std::vector<LearningProgram>& programs) {
  return database_.in_transaction(sql::kWrite, [&]() -> Error {
    TW_ASSIGN(sql::Statement s, database_.statement("INSERT OR IGNORE INTO programs (id, task, "
                                                    "source, schedule) VALUES (?,?,?,?)"));
    for (const LearningProgram& p : programs) {
      s.bind(1, p.id);
      s.bind(2, task);
      s.bind(3, static_cast<int64_t>(p.source));
      s.bind(4, p.schedule);
      if (s.step() != SQLITE_DONE) return database_.failed();
      s.reset();
    }
    return Error::success();
  });
}

Expected<std::vector<LearningProgram>> DataSet::programs(int64_t task) {
  TW_ASSIGN(sql::Statement s, database_.statement("SELECT id, source, schedule FROM programs WHERE "
                                                  "task = ? ORDER BY id"));
  s.bind(1, task);
  std::vector<LearningProgram> out;
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW) out.push_back(program_of(s));
  if (code != SQLITE_DONE) return database_.failed();
  return out;
}

Expected<DataSet::Found> DataSet::program(int64_t id) {
  TW_ASSIGN(sql::Statement s, database_.statement("SELECT id, source, schedule, task FROM programs "
                                                  "WHERE id = ?"));
  s.bind(1, id);
  const int code = s.step();
  if (code == SQLITE_DONE)
    return make_error(DiagCode::invalid_argument, "'{0}' has no program {1}", path(), id);
  if (code != SQLITE_ROW) return database_.failed();
  return Found{s.integer(3), program_of(s)};
}

Expected<int64_t> DataSet::platform(const Platform& p) {
  int64_t id = 0;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    TW_ASSIGN(const std::vector<Platform> all, platforms());
    for (const Platform& one : all)
      if (one.target == p.target && one.machine == p.machine && one.threads == p.threads &&
          one.kind == p.kind)
        id = one.id;
    if (id > 0) return Error::success();
    TW_ASSIGN(sql::Statement s, database_.statement("INSERT INTO platforms (name, target, machine, "
                                                    "threads, kind) VALUES (?,?,?,?,?)"));
    s.bind(1, p.name);
    s.bind(2, p.target);
    s.bind(3, p.machine);
    s.bind(4, int64_t{p.threads});
    s.bind(5, static_cast<int64_t>(p.kind));
    if (s.step() != SQLITE_DONE) return database_.failed();
    id = all.empty() ? 1 : all.back().id + 1;
    return Error::success();
  }));
  return id;
}

Expected<std::vector<Platform>> DataSet::platforms() {
  TW_ASSIGN(sql::Statement s, database_.statement("SELECT id, name, target, machine, threads, kind "
                                                  "FROM platforms ORDER BY id"));
  std::vector<Platform> out;
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW)
    out.push_back({s.integer(0), s.text(1), s.text(2), s.text(3), static_cast<int>(s.integer(4)),
                   of_row<LabelKind>(s.integer(5), kLabelKindCount)});
  if (code != SQLITE_DONE) return database_.failed();
  return out;
}

Error DataSet::add_labels(int64_t platform, const std::vector<Label>& labels) {
  return database_.in_transaction(sql::kWrite, [&]() -> Error {
    TW_ASSIGN(sql::Statement s,
              database_.statement("INSERT OR IGNORE INTO labels (platform, program, pass, status, "
                                  "least, median, samples, contended, code, time) VALUES "
                                  "(?,?,?,?,?,?,?,?,?,?)"));
    for (const Label& l : labels) {
      const int64_t numbers[] = {platform, l.program, l.pass, static_cast<int64_t>(l.status)};
      for (size_t i = 0; i < std::size(numbers); ++i) s.bind(static_cast<int>(i) + 1, numbers[i]);
      s.bind(5, l.least);
      s.bind(6, l.median);
      s.bind(7, int64_t{l.samples});
      s.bind(8, int64_t{l.contended});
      s.bind(9, l.code);
      s.bind(10, l.time);
      if (s.step() != SQLITE_DONE) return database_.failed();
      s.reset();
    }
    return Error::success();
  });
}

Expected<std::vector<Label>> DataSet::labels(int64_t platform, int64_t task, int pass) {
  TW_ASSIGN(
      sql::Statement s,
      database_.statement("SELECT program, pass, status, least, median, samples, contended, "
                          "code, time FROM labels WHERE platform = ? AND pass = ? AND program "
                          "IN (SELECT id FROM programs WHERE task = ?) ORDER BY program"));
  s.bind(1, platform);
  s.bind(2, int64_t{pass});
  s.bind(3, task);
  std::vector<Label> out;
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW)
    out.push_back({s.integer(0), static_cast<int>(s.integer(1)),
                   of_row<Status>(s.integer(2), kStatusCount), s.real(3), s.real(4),
                   static_cast<int>(s.integer(5)), s.integer(6) != 0, s.text(7), s.integer(8)});
  if (code != SQLITE_DONE) return database_.failed();
  return out;
}

Expected<int64_t> DataSet::unlabelled(int64_t platform, int64_t task) {
  TW_ASSIGN(sql::Statement s,
            database_.statement("SELECT count(*) FROM programs WHERE task = ?2 AND NOT EXISTS "
                                "(SELECT 1 FROM labels WHERE platform = ?1 AND program = "
                                "programs.id AND pass = 0)"));
  s.bind(1, platform);
  s.bind(2, task);
  if (s.step() != SQLITE_ROW) return database_.failed();
  return s.integer(0);
}

Expected<std::map<int64_t, int64_t>> DataSet::label_counts(int64_t platform, int pass) {
  TW_ASSIGN(sql::Statement s,
            database_.statement("SELECT task, count(*) FROM labels JOIN programs ON program = id "
                                "WHERE platform = ? AND pass = ? GROUP BY task"));
  s.bind(1, platform);
  s.bind(2, int64_t{pass});
  std::map<int64_t, int64_t> out;
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW) out[s.integer(0)] = s.integer(1);
  if (code != SQLITE_DONE) return database_.failed();
  return out;
}

Expected<bool> DataSet::claim(int64_t platform, int64_t task, const std::string& holder,
                              int64_t now, int64_t seconds) {
  TW_ASSIGN(sql::Statement s,
            database_.statement("INSERT INTO claims (platform, task, holder, until) VALUES "
                                "(?1,?2,?3,?4) ON CONFLICT (platform, task) DO UPDATE SET holder = "
                                "?3, until = ?4 WHERE holder = ?3 OR until < ?5"));
  s.bind(1, platform);
  s.bind(2, task);
  s.bind(3, holder);
  s.bind(4, now + seconds);
  s.bind(5, now);
  if (s.step() != SQLITE_DONE) return database_.failed();
  return database_.changes() > 0;
}

Error DataSet::release(int64_t platform, int64_t task, const std::string& holder) {
  TW_ASSIGN(sql::Statement s, database_.statement("DELETE FROM claims WHERE platform = ? AND task "
                                                  "= ? AND holder = ?"));
  s.bind(1, platform);
  s.bind(2, task);
  s.bind(3, holder);
  return s.step() == SQLITE_DONE ? Error::success() : database_.failed();
}

}  // namespace tw
