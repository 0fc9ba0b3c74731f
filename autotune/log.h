// The tuning log: an SQLite file of records, and of the kernels and tasks that they belong to, each
// stored once. Several processes may use it at once. A process that dies at any moment leaves every
// record whose add() has returned: each is a transaction of its own in the write-ahead log.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotune/record.h"
#include "autotune/sql.h"

namespace tw {

// Selects records. An unset field matches all.
struct LogFilter {
  std::string task = {}, target = {}, kernel_hash = {};
  std::optional<int> threads = {}, language = {};
  std::optional<Status> status = {};
  std::optional<bool> rejected = {};
};

struct PruneOptions {
  // Keeps this many of the best records of each key and kernel, and drops failed and rejected ones
  std::optional<int> keep = {};
  bool other_languages = false;        // drops records of other versions of the schedule language
  std::optional<int64_t> before = {};  // drops records of an earlier time
};

// A key whose best records differ between two logs
struct LogDifference {
  RecordKey key;
  std::optional<Record> ours, theirs;
};

// One thread at a time may use a log, and only one side of a fork.
class TuningLog {
 public:
  using Mode = sql::Mode;
  // Errors: no such file, not a tuning log, a newer version, damage.
  static Expected<TuningLog> open(const std::string& path, Mode mode);
  TuningLog(TuningLog&&) noexcept;
  ~TuningLog();

  const std::string& path() const { return database_.path(); }

  // False: the record exists already. Errors: a record that check() refuses, a full disk, a file
  // that stays locked for a minute.
  Expected<bool> add(const Record& record);
  // Adds all records or, on an error, none. The result is the number of new ones.
  Expected<int64_t> add_all(const std::vector<Record>& records);

  // Identities of the records that this object has added
  const std::set<std::string>& added() const { return added_; }
  // Marks records by their identities, or takes the marks back: all of them or, on an error, none.
  // The result is the number of records that changed.
  Expected<int64_t> mark(const std::vector<std::string>& ids, bool rejected);

  // The ok record with the least median time. Rejected records do not count. Among several records
  // of one schedule, the latest() counts. With a kernel's hash, only schedules for that kernel
  // count.
  Expected<std::optional<Record>> best(const RecordKey& key, const std::string& kernel_hash = "");
  // Visits records in the order of keys, then of median time (failed ones last), then of identity.
  // Equal logs give the same order.
  Error each(const LogFilter& filter, const std::function<Error(const Record&)>& visit);
  Expected<std::vector<Record>> all(const LogFilter& filter = {});
  // For every kernel measured on the target with this many threads: the best of the latest records
  // whose `about` is LIKE the pattern. Rejected records do not count. Kernels with fewer than
  // `least` such records are left out.
  Expected<std::vector<Record>> best_of_kernels(const std::string& target, int threads,
                                                const std::string& about, int least = 1);
  Expected<int64_t> count();
  // The record whose identity begins with `id`. Errors: none, several.
  Expected<Record> find(const std::string& id);

  // Texts that records refer to, so that the log stands without the model: a lowered kernel by its
  // hash, and a task's print_task text by its key. Whoever adds a record adds its texts, which are
  // stored once.
  enum class Text : uint8_t { kernel, task };
  Error keep(Text kind, const std::string& key, const std::string& text);
  // Empty: the log lacks the text, as logs of versions 1 and 2 do.
  Expected<std::optional<std::string>> text(Text kind, const std::string& key);

  // Writes JSON lines in the order of each(). The result is their number.
  Expected<int64_t> export_lines(const LogFilter& filter,
                                 const std::function<Error(const std::string& line)>& write);
  // Reads JSON lines; empty lines are skipped. Adds all or, on an error (with file and line), none.
  // The result is the number of new records.
  Expected<int64_t> import_lines(std::string_view text, const std::string& file);
  Expected<int64_t> merge(TuningLog& other);
  // The result is the number of dropped records.
  Expected<int64_t> prune(const PruneOptions& options);

 private:
  explicit TuningLog(sql::Database database) : database_(std::move(database)) {}
  Error prepare_file(Mode mode);
  Error check_schema();
  Error make_tables();
  Expected<bool> insert(const Record& record);
  Expected<bool> set_rejected(const std::string& id, bool rejected);
  Error insert_text(Text kind, const std::string& key, const std::string& text);
  Error each_text(
      Text kind,
      const std::function<Error(const std::string& key, const std::string& text)>& visit);
  Expected<int64_t> import_line(std::string_view line, const std::string& place);
  std::string columns() const;  // columns of the records table, in the order of a row
  // Conditions for a record that counts: it is not rejected, and no later one of the same schedule
  // counts (latest() in autotune/record.h)
  std::string counts() const;

  sql::Database database_;
  int64_t version_ = 0;  // version of the file, perhaps an older one; 0: no tables
  std::unique_ptr<sql::Statement> insert_;
  std::set<std::string> added_;
};

// The keys whose best records differ between the logs, in order
Expected<std::vector<LogDifference>> diff(TuningLog& ours, TuningLog& theirs);

}  // namespace tw
