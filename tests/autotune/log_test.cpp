// The tuning log: its content after crashes, rivals, merges and damage.
#include <doctest/doctest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "autotune/log.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

template <class T>
T must(Expected<T> value) {
  if (!value) FAIL(error_text(value.takeError()));
  return std::move(*value);
}
void must(Error error) {
  if (error) FAIL(error_text(std::move(error)));
}
TuningLog open_log(const std::string& path) {
  return must(TuningLog::open(path, TuningLog::Mode::write));
}
std::string error_of_reading(const std::string& path) {
  Expected<TuningLog> log = TuningLog::open(path, TuningLog::Mode::read);
  return log ? "" : error_text(log.takeError());
}

std::string key(int64_t number) { return llvm::formatv("{0,0+16}", number).str(); }

Record sample(int64_t number, double seconds = 0.5) {
  Record r;
  r.key = {key(number % 7), key(99), 1};
  r.algorithm = "direct";
  r.kernel_hash = key(number % 3);
  r.schedule = "schedule {\n  unroll i" + std::to_string(number) + "\n}\n";
  r.seconds = {seconds * 1.25, seconds, seconds * 0.8};
  r.device = "a machine";
  r.tool = "tilewright 1";
  r.time = 1'700'000'000 + number;
  return r;
}

Record failure(int64_t number, Status status) {
  Record r = sample(number);
  r.seconds.clear();
  r.status = status;
  r.error = "step 3: no such loop";
  return r;
}

std::string exported(TuningLog& log) {
  std::string text;
  must(log.export_lines({}, [&](const std::string& line) {
    text += line + "\n";
    return Error::success();
  }));
  return text;
}

// A process that adds records number, number + 1, ... until `most` or until it is killed. It writes
// the number of each record that add() has finished to a pipe, so that the parent knows which
// records must be there.
struct Writer {
  pid_t process = -1;
  int pipe = -1;
  Writer(const std::string& path, int64_t number, int64_t most) {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe(ends) == 0);
    process = ::fork();
    REQUIRE(process >= 0);
    if (process == 0) {
      ::close(ends[0]);
      Expected<TuningLog> log = TuningLog::open(path, TuningLog::Mode::write);
      if (!log) ::_exit(1);
      for (int64_t i = number; i < number + most; ++i) {
        Expected<bool> added = log->add(sample(i));
        if (!added || !*added || ::write(ends[1], &i, sizeof i) != sizeof i) ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    pipe = ends[0];
  }
  Writer(const Writer&) = delete;
  // Returns all numbers that the process wrote until its end.
  std::vector<int64_t> finished() {
    std::vector<int64_t> numbers;
    for (int64_t number = 0; ::read(pipe, &number, sizeof number) == sizeof number;)
      numbers.push_back(number);
    ::close(pipe);
    return numbers;
  }
  int wait() {
    int status = 0;
    ::waitpid(process, &status, 0);
    return status;
  }
};

}  // namespace

TEST_CASE("a record is one line and comes back") {
  const Record r = sample(3);
  CHECK(print(r).find('\n') == std::string::npos);
  CHECK(must(parse_record(print(r), "text")) == r);
  const Record f = failure(4, Status::wrong_result);
  CHECK(must(parse_record(print(f), "text")) == f);
  CHECK(record_id(r).size() == 32);
  CHECK(record_id(r) != record_id(f));
  CHECK(median_seconds(r) == 0.5);
  for (int i = 0; i < kStatusCount; ++i)
    CHECK(status_from_name(status_name(static_cast<Status>(i))) == static_cast<Status>(i));
  CHECK(!status_from_name("fine"));
}

TEST_CASE("what is no record is refused with a reason") {
  auto reason = [](auto change) {
    Record r = sample(1);
    change(r);
    return error_text(check(r));
  };
  CHECK(error_text(check(sample(1))).empty());
  CHECK(reason([](Record& r) { r.key.task = "x"; }).find("16 hex digits") != std::string::npos);
  CHECK(reason([](Record& r) { r.seconds = {}; }).find("samples") != std::string::npos);
  CHECK(reason([](Record& r) { r.seconds[1] = -1; }).find("positive") != std::string::npos);
  CHECK(reason([](Record& r) {
          r.seconds[1] = std::numeric_limits<double>::infinity();
        }).find("positive") != std::string::npos);
  CHECK(reason([](Record& r) { r.error = "two\nlines"; }).find("one line") != std::string::npos);
  CHECK(reason([](Record& r) { r.schedule.assign((1 << 20) + 1, ' '); }).find("longer") !=
        std::string::npos);
  for (const char* line : {"", "[]", "{}", "{\"status\":\"ok\"}", "{\"status\":\"fine\"}", "{"})
    CHECK(!error_text(parse_record(line, "f:1").takeError()).empty());
}

TEST_CASE("dates") {
  CHECK(date_text(0) == "1970-01-01");
  CHECK(date_text(1'763'800'000) == "2025-11-22");
  CHECK(date_from_text("2025-11-22") == 1'763'769'600);
  for (const char* wrong : {"2025-13-01", "2025-02-30", "25-01-01", "2025/01/01", "2025-1-011", ""})
    CHECK(!date_from_text(wrong));
}

TEST_CASE("records are found again, the best of a key by its median") {
  const TestFolder folder;
  TuningLog log = open_log(folder / "deep/down/tilewright.db");
  CHECK(must(log.add(sample(1, 0.5))));
  CHECK(must(log.add(sample(8, 0.25))));  // 1 and 8: one task, two kernels
  CHECK(must(log.add(sample(15, 0.125))));
  CHECK(must(log.add(failure(1, Status::crashed))));
  CHECK(!must(log.add(sample(1, 0.5))));
  CHECK(must(log.count()) == 4);
  CHECK(*must(log.best(sample(1).key)) == sample(15, 0.125));
  CHECK(*must(log.best(sample(1).key, sample(1).kernel_hash)) == sample(1, 0.5));
  RecordKey other = sample(1).key;
  other.target = key(98);
  CHECK(!must(log.best(other)));
  other = sample(1).key;
  other.threads = 2;
  CHECK(!must(log.best(other)));
  other = sample(1).key;
  other.language = kLanguageVersion + 1;
  CHECK(!must(log.best(other)));
  CHECK(must(log.all({.status = Status::crashed})) == std::vector{failure(1, Status::crashed)});
  CHECK(must(log.all({.kernel_hash = key(0)})) == std::vector{sample(15, 0.125)});
  CHECK(must(log.all()).back() == failure(1, Status::crashed));
  Record wrong = sample(1);
  wrong.seconds = {0};
  CHECK(error_text(log.add(wrong).takeError()).find("positive") != std::string::npos);
  CHECK(must(log.count()) == 4);
}

TEST_CASE("of a schedule's measurements the last counts") {
  const TestFolder folder;
  TuningLog log = open_log(folder / "log.db");
  Record lucky = sample(1, 0.1), again = sample(1, 0.4), other = sample(8, 0.2);
  other.kernel_hash = lucky.kernel_hash;
  again.time = lucky.time + 60;
  must(log.add_all({lucky, other, again}));
  const Record best = *must(log.best(lucky.key));
  CHECK(best.schedule == other.schedule);
  const std::vector<Record> left = latest(must(log.all()));
  REQUIRE(left.size() == 2);
  CHECK(left[0] == other);
  CHECK(left[1] == again);
  again.time = lucky.time;  // in one second, the slower record counts
  CHECK(latest({again, lucky}) == std::vector<Record>{again});
  CHECK(latest({lucky, again}) == std::vector<Record>{again});
  must(log.prune({.keep = 1}));
  CHECK(must(log.all()) == std::vector<Record>{other});
}

TEST_CASE("what kill -9 leaves: every record whose add() returned") {
  const TestFolder folder;
  const std::string path = folder / "tilewright.db";
  std::mt19937_64 random(7);
  std::set<int64_t> expected;
  for (int round = 0; round < 25; ++round) {
    Writer writer(path, round * 1'000'000, 1'000'000);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ::kill(writer.process, SIGKILL);
    const std::vector<int64_t> finished = writer.finished();
    REQUIRE(WIFSIGNALED(writer.wait()));
    expected.insert(finished.begin(), finished.end());
  }
  TuningLog log = open_log(path);
  std::set<int64_t> there;
  for (const Record& r : must(log.all())) there.insert(r.time - 1'700'000'000);
  for (int64_t number : expected)
    CHECK_MESSAGE(there.contains(number), "record " << number << " is lost");
  CHECK(there.size() <= expected.size() + 25);  // one a round may be added, but not reported
  CHECK(must(log.add(sample(999'999))));
}

TEST_CASE("writers at once lose nothing") {
  const TestFolder folder;
  const std::string path = folder / "tilewright.db";
  constexpr int64_t kEach = 200;
  std::vector<std::unique_ptr<Writer>> writers;
  for (int64_t w = 0; w < 4; ++w)
    writers.push_back(std::make_unique<Writer>(path, w * 1000, kEach));
  for (auto& writer : writers) {
    CHECK(writer->finished().size() == kEach);
    CHECK(writer->wait() == 0);
  }
  TuningLog log = open_log(path);
  CHECK(must(log.count()) == 4 * kEach);
}

TEST_CASE("export, import and merge: the same log, however often") {
  const TestFolder folder;
  TuningLog a = open_log(folder / "a.db"), b = open_log(folder / "b.db");
  for (int64_t i = 0; i < 20; ++i)
    must(a.add(i % 5 ? sample(i, 1.0 / static_cast<double>(i + 3)) : failure(i, Status::timeout))
             .takeError());
  for (int64_t i = 10; i < 30; ++i)
    must(b.add(i % 5 ? sample(i, 1.0 / static_cast<double>(i + 3)) : failure(i, Status::timeout))
             .takeError());
  const std::string text = exported(a);

  TuningLog c = open_log(folder / "c.db");
  CHECK(must(c.import_lines(text, "a.jsonl")) == 20);
  CHECK(exported(c) == text);
  CHECK(must(c.import_lines("\n" + text, "a.jsonl")) == 0);

  CHECK(must(a.merge(b)) == 10);
  const std::string both = exported(a);
  CHECK(must(a.merge(b)) == 0);
  CHECK(must(a.merge(a)) == 0);
  CHECK(exported(a) == both);
  CHECK(must(b.merge(c)) == 10);  // merged the other way round
  CHECK(exported(b) == both);
}

TEST_CASE("an import with a wrong line changes nothing and names the line") {
  const TestFolder folder;
  TuningLog log = open_log(folder / "a.db");
  const std::string error = error_text(
      log.import_lines(print(sample(1)) + "\n{\"status\":\"ok\"}\n", "shared.jsonl").takeError());
  CHECK(error.find("shared.jsonl:2") != std::string::npos);
  CHECK(must(log.count()) == 0);
}

TEST_CASE("prune keeps the best, this language, what is young") {
  const TestFolder folder;
  TuningLog log = open_log(folder / "a.db");
  // One task, one kernel, four records
  for (int64_t i = 0; i < 21 * 4; i += 21)
    must(log.add(sample(i, 1.0 + static_cast<double>(i))).takeError());
  // Another kernel
  must(log.add(sample(7, 9)).takeError());
  must(log.add(failure(0, Status::illegal)).takeError());
  Record later = sample(0, 0.001);
  later.key.language = kLanguageVersion + 1;
  must(log.add(later).takeError());
  CHECK(must(log.prune({.before = 1'700'000'001})) == 3);
  CHECK(must(log.count()) == 4);
  must(log.add(later).takeError());
  CHECK(must(log.prune({.other_languages = true})) == 1);
  must(log.add(failure(50, Status::illegal)).takeError());
  CHECK(must(log.prune({.keep = 1})) == 3);
  const std::vector<Record> left = must(log.all());
  REQUIRE(left.size() == 2);
  CHECK(left[0] == sample(7, 9));
  CHECK(left[1] == sample(21, 22));
}

TEST_CASE("diff: the keys whose best records differ") {
  const TestFolder folder;
  TuningLog a = open_log(folder / "a.db"), b = open_log(folder / "b.db");
  for (TuningLog* log : {&a, &b}) must(log->add(sample(1)).takeError());
  must(b.add(sample(8, 7)).takeError());  // slower: the best is the same
  CHECK(must(diff(a, b)).empty());
  must(b.add(sample(15, 0.1)).takeError());
  must(a.add(sample(2)).takeError());
  must(a.add(failure(3, Status::crashed)).takeError());
  const std::vector<LogDifference> found = must(diff(a, b));
  REQUIRE(found.size() == 2);
  CHECK(found[0].key.task == key(1));
  CHECK(*found[0].ours == sample(1));
  CHECK(*found[0].theirs == sample(15, 0.1));
  CHECK(found[1].key.task == key(2));
  CHECK(!found[1].theirs);
}

TEST_CASE("foreign, hostile and damaged files end in one clear error") {
  const TestFolder folder;
  auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  };
  auto database = [&](const std::string& name, const char* sql) {
    sqlite3* made = nullptr;
    REQUIRE(sqlite3_open((folder / name).c_str(), &made) == SQLITE_OK);
    CHECK(sqlite3_exec(made, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(made);
    return folder / name;
  };
  CHECK(error_of_reading(folder / "none.db").find("there is no tuning log") != std::string::npos);
  CHECK(error_of_reading(folder / "").find("it is a folder") != std::string::npos);
  CHECK(error_of_reading(write("text.db", std::string(5000, 'x'))).find("not an SQLite file") !=
        std::string::npos);
  CHECK(error_of_reading(database("other.db", "CREATE TABLE t (a)")).find("of another program") !=
        std::string::npos);
  const std::string newer = database(
      "newer.db",
      "PRAGMA application_id = 1417104487; PRAGMA user_version = 5; CREATE TABLE t (a)");
  CHECK(error_of_reading(newer).find("has version 5") != std::string::npos);
  const std::string shape = database("shape.db",
                                     "PRAGMA application_id = 1417104487; PRAGMA user_version = 1; "
                                     "CREATE VIEW records AS SELECT 1");
  CHECK(error_of_reading(shape).find("tables") != std::string::npos);
  CHECK(error_text(TuningLog::open(folder / "other.db", TuningLog::Mode::write).takeError())
            .find("of another program") != std::string::npos);

  // The file of a process that died before it wrote
  CHECK(error_of_reading(write("empty.db", "")).empty());
  TuningLog empty = must(TuningLog::open(folder / "empty.db", TuningLog::Mode::read));
  CHECK(must(empty.all()).empty());
  CHECK(!must(empty.best(sample(1).key)));

  { must(open_log(folder / "good.db").add(sample(1)).takeError()); }
  // A better time that nobody measured
  database("good.db", "UPDATE records SET median = 0.0001, seconds = '0.0001'");
  TuningLog changed = must(TuningLog::open(folder / "good.db", TuningLog::Mode::read));
  CHECK(error_text(changed.best(sample(1).key).takeError()).find("is damaged") !=
        std::string::npos);
}

TEST_CASE(
    "a log of an earlier version is read as it is and brought up to date when it is written") {
  const std::string third = "ALTER TABLE records DROP COLUMN rejected; PRAGMA user_version = 3; ";
  const std::string second = third +
                             "DROP TABLE kernels; DROP TABLE tasks; PRAGMA user_version = 2; ";
  const std::string first = second +
                            "ALTER TABLE records DROP COLUMN about; PRAGMA user_version = 1";
  for (const std::string& change : {first, second, third}) {
    const TestFolder folder;
    const std::string path = folder / "old.db";
    must(open_log(path).add(sample(1)).takeError());
    sqlite3* old = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &old) == SQLITE_OK);
    REQUIRE(sqlite3_exec(old, change.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(old);
    TuningLog read = must(TuningLog::open(path, TuningLog::Mode::read));
    CHECK(must(read.all()) == std::vector{sample(1)});
    CHECK(must(read.find(record_id(sample(1)))) == sample(1));
    CHECK(*must(read.best(sample(1).key)) == sample(1));
    CHECK(must(read.all({.rejected = false})) == std::vector{sample(1)});
    CHECK(must(read.all({.rejected = true})).empty());
    CHECK(!must(read.text(TuningLog::Text::kernel, sample(1).kernel_hash)));
    CHECK(exported(read) == print(sample(1)) + "\n");
    Record more = sample(2);
    more.about = "conv 1.00 p{a=1}";
    must(open_log(path).add(more).takeError());
    TuningLog now = must(TuningLog::open(path, TuningLog::Mode::read));
    CHECK(must(now.all()).size() == 2);
    CHECK(must(open_log(path).mark({record_id(more)}, true)) == 1);
    CHECK(must(now.best_of_kernels(more.key.target, 1, "% %")).empty());
    CHECK(must(open_log(path).mark({record_id(more)}, false)) == 1);
    CHECK(must(now.best_of_kernels(more.key.target, 1, "% %")) == std::vector{more});
  }
}

TEST_CASE("kernels and tasks are kept once, travel with their records and go with the last one") {
  using Text = TuningLog::Text;
  const TestFolder folder;
  TuningLog a = open_log(folder / "a.db"), b = open_log(folder / "b.db");
  const Record record = sample(1);
  must(a.add(record).takeError());
  const auto keep = [&](Text kind, const std::string& key, const std::string& text) {
    return error_text(a.keep(kind, key, text));
  };
  CHECK(keep(Text::kernel, record.kernel_hash, "kernel \"text\"\n").empty());
  CHECK(keep(Text::kernel, record.kernel_hash, "another").empty());
  CHECK(keep(Text::task, record.key.task, "task text").empty());
  CHECK(keep(Text::kernel, "0123456789abcdef", "of no record").empty());
  CHECK(keep(Text::kernel, "no hash", "text").find("16 hex digits") != std::string::npos);
  CHECK(must(a.text(Text::kernel, record.kernel_hash)) == "kernel \"text\"\n");

  const std::string lines = exported(a);
  CHECK(lines.find("of no record") == std::string::npos);
  CHECK(must(b.import_lines(lines, "a.jsonl")) == 1);
  CHECK(exported(b) == lines);
  CHECK(must(b.text(Text::task, record.key.task)) == "task text");
  CHECK(error_text(b.import_lines("{\"text\":\"x\"}", "a.jsonl").takeError()).find("a.jsonl:1") !=
        std::string::npos);
  TuningLog c = open_log(folder / "c.db");
  CHECK(must(c.merge(a)) == 1);
  CHECK(exported(c) == lines);
  CHECK(must(c.prune({.before = record.time + 1})) == 1);
  CHECK(!must(c.text(Text::kernel, record.kernel_hash)));
}

TEST_CASE("a record is found by the beginning of its identity") {
  const TestFolder folder;
  TuningLog log = open_log(folder / "a.db");
  for (int64_t i = 0; i < 40; ++i) must(log.add(sample(i)).takeError());
  const std::string id = record_id(sample(7));
  CHECK(must(log.find(id)) == sample(7));
  CHECK(must(log.find(id.substr(0, 12))) == sample(7));
  CHECK(error_text(log.find("").takeError()).find("several") != std::string::npos);
  CHECK(error_text(log.find("x").takeError()).find("no record's identity") != std::string::npos);
}

TEST_CASE("the best record of each kernel") {
  const TestFolder folder;
  const std::string path = folder / "a.db";
  Record more = sample(2);
  more.about = "conv 1.00 p{a=1}";
  must(open_log(path).add(more).takeError());
  CHECK(must(must(TuningLog::open(path, TuningLog::Mode::read))
                 .best_of_kernels(more.key.target, 1, "% %")) == std::vector{more});
}

TEST_CASE("what a record is about is no part of its identity, and merged logs agree on it") {
  const TestFolder folder;
  Record bare = sample(1), first = bare, second = bare;
  first.about = "conv 1.00 p{a=1}", second.about = "conv 1.00 p{a=2}";
  CHECK(record_id(first) == record_id(bare));
  TuningLog a = open_log(folder / "a.db"), b = open_log(folder / "b.db");
  CHECK(must(a.add(bare)));
  CHECK_FALSE(must(a.add(first)));
  CHECK(must(a.all()) == std::vector{first});
  CHECK(must(b.add(second)));
  CHECK(must(a.merge(b)) == 0);
  CHECK(must(b.merge(a)) == 0);
  CHECK(must(a.all()) == must(b.all()));
  CHECK(must(parse_record(print(first), "text")) == first);
}

TEST_CASE("a rejected record is kept, and no choice takes it until it counts again") {
  const TestFolder folder;
  TuningLog log = open_log(folder / "a.db"), other = open_log(folder / "b.db");
  Record slow = sample(1, 0.5), fast = sample(1, 0.1);
  fast.time = slow.time + 60;  // a later measurement of the same schedule
  fast.about = slow.about = "conv 1.00 p{a=1}";
  must(log.add_all({slow, fast}).takeError());
  CHECK(log.added() == std::set<std::string>{record_id(slow), record_id(fast)});
  CHECK(must(log.mark({record_id(fast)}, true)) == 1);
  CHECK(must(log.mark({record_id(fast)}, true)) == 0);
  fast.rejected = true;
  CHECK(record_id(fast) == record_id(must(log.find(record_id(fast)))));
  CHECK(must(parse_record(print(fast), "text")) == fast);
  CHECK(must(log.all()) == std::vector{fast, slow});
  CHECK(must(log.all({.rejected = true})) == std::vector{fast});
  CHECK(*must(log.best(slow.key)) == slow);  // an earlier measurement counts again
  CHECK(must(log.best_of_kernels(slow.key.target, 1, "% %")) == std::vector{slow});
  // The mark goes along, and to a log that has the record already.
  CHECK(must(other.merge(log)) == 2);
  CHECK(exported(other) == exported(log));
  TuningLog third = open_log(folder / "c.db");
  Record unmarked = fast;
  unmarked.rejected = false;
  must(third.add(unmarked).takeError());
  CHECK(must(third.import_lines(exported(log), "a.jsonl")) == 1);
  CHECK(exported(third) == exported(log));
  CHECK(must(diff(log, third)).empty());
  CHECK(must(third.mark({record_id(fast)}, false)) == 1);
  CHECK(*must(third.best(slow.key)) == unmarked);
  must(log.prune({.keep = 2}).takeError());
  CHECK(must(log.all()) == std::vector{slow});
}

TEST_CASE("a file with any byte flipped is read without harm") {
  const TestFolder folder;
  {
    TuningLog log = open_log(folder / "a.db");
    for (int64_t i = 0; i < 40; ++i) must(log.add(sample(i)).takeError());
  }
  std::ifstream file(folder / "a.db", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::mt19937_64 random(3);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 8; ++flips)
      damaged[random() % (i % 2 ? 200 : damaged.size())] = static_cast<char>(random());
    std::ofstream(folder / "b.db", std::ios::binary) << damaged;
    Expected<TuningLog> log = TuningLog::open(folder / "b.db", TuningLog::Mode::read);
    Error error = log ? log->all().takeError() : log.takeError();
    refused += static_cast<bool>(error);
    llvm::consumeError(std::move(error));
  }
  CHECK(refused > 20);
}
