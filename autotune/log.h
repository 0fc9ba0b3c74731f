// The tuning log: an SQLite file of records, and of the kernels and tasks that they are of, each
// once. Several processes may use it at once, and one that dies at any moment leaves every record
// whose add() has returned: each is a transaction of its own in the write-ahead log.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/record.h"
#include "autotune/sql.h"

namespace tw {

// Which records; what is not set matches all.
struct LogFilter {
  std::string task = {}, target = {}, kernel_hash = {};
  std::optional<int> threads = {}, language = {};
  std::optional<Status> status = {};
};

struct PruneOptions {
  // The best so many of each key and kernel; what failed goes too
  std::optional<int> keep = {};
  bool other_languages = false;        // drops records of other versions of the schedule language
  std::optional<int64_t> before = {};  // drops records of an earlier time
};

// A key whose best records are not the same.
struct LogDifference {
  RecordKey key;
  std::optional<Record> ours, theirs;
};

// Used by one thread at a time, and not on both sides of a fork.
class TuningLog {
 public:
  using Mode = sql::Mode;
  // Errors: no such file, not a tuning log, one of a newer version, damage.
  static Expected<TuningLog> open(const std::string& path, Mode mode);
  TuningLog(TuningLog&&) noexcept;
  ~TuningLog();

  const std::string& path() const { return database_.path(); }

  // false: it was there already. Errors: a record that check() refuses, a full disk, a file that
  // stays locked for a minute.
  Expected<bool> add(const Record& record);
  // All or, on an error, none. The result: how many were not there yet.
  Expected<int64_t> add_all(const std::vector<Record>& records);

  // The ok record of least median time, of a schedule's several the latest(); with a kernel's hash:
  // of the schedules for that kernel.
  Expected<std::optional<Record>> best(const RecordKey& key, const std::string& kernel_hash = "");
  // In the order of keys, then of median time (what failed last), then of identity: the same for
  // equal logs.
  Error each(const LogFilter& filter, const std::function<Error(const Record&)>& visit);
  Expected<std::vector<Record>> all(const LogFilter& filter = {});
  // Of every kernel measured on the target with so many threads, the best of the latest records
  // that are about something LIKE that; least: where there are so many.
  Expected<std::vector<Record>> best_of_kernels(const std::string& target, int threads,
                                                const std::string& about, int least = 1);
  Expected<int64_t> count();
  // The record whose identity begins so. Errors: none, several.
  Expected<Record> find(const std::string& id);

  // What records are of, without the model: a lowered kernel by its hash, and by a task's key what
  // print_task makes of it. Whoever adds a record adds these once.
  enum class Text : uint8_t { kernel, task };
  Error keep(Text kind, const std::string& key, const std::string& text);
  // Nothing: the log does not have it, as those of versions 1 and 2.
  Expected<std::optional<std::string>> text(Text kind, const std::string& key);

  // JSON lines in the order of each(). The result: how many.
  Expected<int64_t> export_lines(const LogFilter& filter,
                                 const std::function<Error(const std::string& line)>& write);
  // Text of JSON lines; empty lines are skipped. All or, on an error (which names file and line),
  // none. The result: how many were new.
  Expected<int64_t> import_lines(std::string_view text, const std::string& file);
  Expected<int64_t> merge(TuningLog& other);
  // The result: how many were dropped.
  Expected<int64_t> prune(const PruneOptions& options);

 private:
  explicit TuningLog(sql::Database database) : database_(std::move(database)) {}
  Error prepare_file(Mode mode);
  Error check_schema();
  Error make_tables();
  Expected<bool> insert(const Record& record);
  Error insert_text(Text kind, const std::string& key, const std::string& text);
  Error each_text(
      Text kind,
      const std::function<Error(const std::string& key, const std::string& text)>& visit);
  Expected<int64_t> import_line(std::string_view line, const std::string& place);
  std::string columns() const;  // of records, in the order of a row

  sql::Database database_;
  int64_t version_ = 0;  // of the file, opened for reading perhaps an older one; 0: no tables
  std::unique_ptr<sql::Statement> insert_;
};

// Keys of two logs whose best records differ, in their order.
Expected<std::vector<LogDifference>> diff(TuningLog& ours, TuningLog& theirs);

}  // namespace tw
