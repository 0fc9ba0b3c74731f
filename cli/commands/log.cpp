// tilewright log ACTION: shows what a tuning log knows, and shares it. An action is one function; a
// table lists them.
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <ostream>

#include "autotune/log.h"
#include "autotune/median.h"
#include "autotune/task_text.h"
#include "cli/commands/commands.h"
#include "cli/default_log.h"
#include "cli/file_roles.h"
#include "cli/flags.h"
#include "cli/targets.h"
#include "driver/tune/replay.h"
#include "frontend/frontend.h"
#include "packager/output_file.h"

namespace tw {
namespace {

struct LogArgs {
  std::string action, log;
  std::vector<std::string> files;
  std::string task, target, before, kernel, machine = "host";
  std::optional<int> threads, keep;
  bool other_languages = false;
};

struct KeySummary {
  std::string name;  // name of the task; "": the log lacks its text
  int64_t records = 0, good = 0, rejected = 0;
  std::optional<Record> best;
  int64_t newest = 0;
};

Json to_json(const RecordKey& key) {
  return Json::Object{{"task", key.task},
                      {"target", key.target},
                      {"threads", key.threads},
                      {"regime", key.regime},
                      {"language", key.language}};
}

Json to_json(const Record& r) {
  return Json::Object{{"key", to_json(r.key)},       {"id", record_id(r)},
                      {"algorithm", r.algorithm},    {"kernel", r.kernel_hash},
                      {"median", median_seconds(r)}, {"seconds", json_array(r.seconds)},
                      {"device", r.device},          {"tool", r.tool},
                      {"date", date_text(r.time)},   {"schedule", r.schedule},
                      {"rejected", r.rejected}};
}

std::string language_text(const RecordKey& key) {
  return key.language == kLanguageVersion ? "" : " language " + std::to_string(key.language);
}

std::string key_text(const RecordKey& key) {
  char text[128];
  std::snprintf(text, sizeof text, "%-16.16s %-16.16s %7d %-12.32s", key.task.c_str(),
                key.target.c_str(), key.threads, key.regime.c_str());
  return text + language_text(key);
}

std::string best_text(const std::optional<Record>& best) {
  if (!best) return "none";
  char text[64];
  std::snprintf(text, sizeof text, "%10.4f ms  %s  ", median_seconds(*best) * 1e3,
                date_text(best->time).c_str());
  return text + best->algorithm;
}

// Columns for a line with regime and date; with the date alone; least columns of a task's name
constexpr int kAll = 140, kWithDate = 120, kTaskColumns = 16;

// A line of `log show`. With few columns it leaves out the regime and the date, and shortens the
// target to its beginning. The name takes the rest.
std::string summary_line(const RecordKey& key, const KeySummary& s, int columns) {
  char text[160];
  std::snprintf(text, sizeof text, "%-16.16s %-*.*s %7d", key.task.c_str(),
                columns < kWithDate ? 8 : 16, columns < kWithDate ? 8 : 16, key.target.c_str(),
                key.threads);
  std::string line = text;
  if (columns >= kAll) line += " " + column(key.regime, 12);
  std::snprintf(text, sizeof text, " %7lld %6lld  ", static_cast<long long>(s.records),
                static_cast<long long>(s.good));
  line += text;
  if (s.best) {
    std::snprintf(text, sizeof text, "%10.4f ms  ", median_seconds(*s.best) * 1e3);
    line += text + (columns >= kWithDate ? date_text(s.best->time) + "  " : "") + s.best->algorithm;
  } else {
    line += "none";
  }
  if (s.rejected > 0) line += ", " + std::to_string(s.rejected) + " rejected";
  line += language_text(key);
  const int left = columns - static_cast<int>(line.size()) - 2;
  return s.name.empty() ? line : line + "  " + fit(s.name, std::max(kTaskColumns, left));
}

std::string summary_header(int columns) {
  return "task             " + std::string(columns < kWithDate ? "target  " : "target          ") +
         " threads" + (columns >= kAll ? " regime      " : "") + " records     ok          best" +
         (columns >= kWithDate ? "       measured  " : "     ") + "algorithm  kernel";
}

LogFilter filter_of(const LogArgs& args) {
  return {.task = args.task, .target = args.target, .threads = args.threads};
}

// "": the log lacks the task's text, or it is of another version
Expected<std::string> name_of_task(TuningLog& log, const std::string& task) {
  TW_ASSIGN(const std::optional<std::string> text, log.text(TuningLog::Text::task, task));
  if (!text) return std::string();
  Expected<ParsedTask> parsed = parse_task(*text);
  if (parsed) return task_name(parsed->graph, parsed->group);
  llvm::consumeError(parsed.takeError());
  return std::string();
}

Expected<std::map<RecordKey, KeySummary>> summaries(TuningLog& log, const LogFilter& filter) {
  std::map<RecordKey, KeySummary> out;
  TW_TRY(log.each(filter, [&](const Record& r) {
    KeySummary& s = out[r.key];
    ++s.records;
    s.good += r.status == Status::ok;
    s.rejected += r.rejected;
    s.newest = std::max(s.newest, r.time);
    // The first of a key is its best.
    if (!s.best && r.status == Status::ok && !r.rejected) s.best = r;
    return Error::success();
  }));
  for (auto& [key, s] : out) { TW_ASSIGN(s.name, name_of_task(log, key.task)); }
  return out;
}

// A record with the texts of its kernel and its task, by its identity
struct Whole {
  Record record;
  std::string kernel, task;  // texts; task: perhaps empty
};
Expected<Whole> whole_record(TuningLog& log, const std::string& id) {
  Whole w;
  TW_ASSIGN(w.record, log.find(id));
  TW_ASSIGN(const auto kernel, log.text(TuningLog::Text::kernel, w.record.kernel_hash));
  TW_ASSIGN(const auto task, log.text(TuningLog::Text::task, w.record.key.task));
  if (!kernel)
    return make_error(DiagCode::unsupported,
                      "'{0}' does not have the kernel of record {1}: it was written by an earlier "
                      "version, or merged from one",
                      log.path(), record_id(w.record));
  w.kernel = *kernel, w.task = task.value_or("");
  return w;
}

Expected<int> show_kernel(const LogArgs& args, TuningLog& log, Console& console) {
  TW_ASSIGN(const Whole w, whole_record(log, args.kernel));
  if (console.json)
    write_json(console, Json::Object{{"log", log.path()},
                                     {"record", to_json(w.record)},
                                     {"task", w.task},
                                     {"kernel", w.kernel}});
  else
    console.out << "; record " << record_id(w.record) << (w.record.rejected ? ", rejected" : "")
                << "\n"
                << w.task << w.kernel << w.record.schedule;
  return kExitOk;
}

Expected<int> replay(const LogArgs& args, TuningLog& log, Console& console) {
  TW_ASSIGN(const Whole w, whole_record(log, args.files[0]));
  TW_ASSIGN(const Target target, load_target(args.machine, config_dirs()));
  if (target_key(target.main_device()) != w.record.key.target)
    return make_error(DiagCode::invalid_argument,
                      "record {0} is of target {1}, and '{2}' is {3}: -t names another one",
                      record_id(w.record), w.record.key.target, target.name,
                      target_key(target.main_device()));
  Replay asked{w.kernel, w.record.schedule, w.record.kernel_hash, w.record.key.threads};
  if (!w.task.empty()) {
    TW_ASSIGN(const ParsedTask task, parse_task(w.task));
    asked.weights_between = task.weights_between;
  }
  TW_ASSIGN(const MeasureResult now, measure_again(asked, target));
  const double before = median_seconds(w.record);
  const double seconds = now.seconds.empty() ? kInfiniteSeconds : median_of(now.seconds);
  if (console.json) {
    write_json(console, Json::Object{{"log", log.path()},
                                     {"record", to_json(w.record)},
                                     {"status", status_name(now.status)},
                                     {"error", now.error},
                                     {"device", now.device},
                                     {"contended", now.contended},
                                     {"median", seconds},
                                     {"seconds", json_array(now.seconds)}});
  } else if (now.status == Status::ok) {
    char text[128];
    std::snprintf(text, sizeof text, "%.4f ms now, %.4f ms in the record: %.3f times as long",
                  seconds * 1e3, before * 1e3, seconds / before);
    console.out << text << (now.contended ? ", disturbed" : "") << "\n";
  } else {
    console.out << status_name(now.status) << ": " << now.error << "\n";
  }
  return now.status == Status::ok ? kExitOk : kExitMismatch;
}

Expected<int> show(const LogArgs& args, TuningLog& log, Console& console) {
  if (!args.kernel.empty()) return show_kernel(args, log, console);
  TW_ASSIGN(const auto keys, summaries(log, filter_of(args)));
  int64_t records = 0;
  Json::Array list;
  for (const auto& [key, s] : keys) {
    records += s.records;
    list.push_back(Json::Object{{"key", to_json(key)},
                                {"name", s.name},
                                {"records", s.records},
                                {"ok", s.good},
                                {"rejected", s.rejected},
                                {"newest", date_text(s.newest)},
                                {"best", s.best ? Json(median_seconds(*s.best)) : Json()},
                                {"algorithm", s.best ? Json(s.best->algorithm) : Json()}});
  }
  if (console.json) {
    write_json(console, Json::Object{{"log", log.path()}, {"records", records}, {"keys", list}});
    return kExitOk;
  }
  console.out << log.path() << ": " << records << " records of " << keys.size() << " keys\n";
  if (!keys.empty()) console.out << summary_header(console.columns) << "\n";
  for (const auto& [key, s] : keys) console.out << summary_line(key, s, console.columns) << "\n";
  return kExitOk;
}

Expected<int> best(const LogArgs& args, TuningLog& log, Console& console) {
  TW_ASSIGN(const auto keys, summaries(log, filter_of(args)));
  Json::Array list;
  for (const auto& [key, s] : keys) {
    if (!s.best) continue;
    if (console.json) list.push_back(to_json(*s.best));
    else
      console.out << (s.name.empty() ? "" : s.name + "\n") << key_text(key) << best_text(s.best)
                  << ", " << s.best->seconds.size() << " samples on " << s.best->device << "\n"
                  << s.best->schedule;
  }
  if (console.json) write_json(console, Json::Object{{"log", log.path()}, {"best", list}});
  return kExitOk;
}

Expected<int> export_log(const LogArgs& args, TuningLog& log, Console& console) {
  std::string text;
  TW_ASSIGN(const int64_t count, log.export_lines(filter_of(args), [&](const std::string& line) {
    text += line + "\n";
    return Error::success();
  }));
  const std::string file = args.files.empty() ? "" : args.files[0];
  if (!file.empty()) TW_TRY(write_file(file, text));
  else if (!console.json) console.out << text;
  if (console.json)
    write_json(console, Json::Object{{"log", log.path()},
                                     {"file", file},
                                     {"records", count},
                                     {"lines", file.empty() ? Json(text) : Json()}});
  else if (!file.empty()) console.out << file << ": " << count << " records\n";
  return kExitOk;
}

// Takes in the files one after the other, each whole or not at all.
Expected<int> take_in(const LogArgs& args, TuningLog& log, Console& console,
                      const std::function<Expected<int64_t>(const std::string& file)>& take) {
  Json::Array list;
  for (const std::string& file : args.files) {
    TW_ASSIGN(const int64_t added, take(file));
    if (console.json) list.push_back(Json::Object{{"file", file}, {"added", added}});
    else console.out << file << ": " << added << " new records\n";
  }
  TW_ASSIGN(const int64_t records, log.count());
  if (console.json)
    write_json(console, Json::Object{{"log", log.path()}, {"files", list}, {"records", records}});
  else console.out << log.path() << ": " << records << " records\n";
  return kExitOk;
}

Expected<int> import_log(const LogArgs& args, TuningLog& log, Console& console) {
  return take_in(args, log, console, [&](const std::string& file) -> Expected<int64_t> {
    auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file, true, false);
    if (!buffer)
      return make_error(DiagCode::io, "cannot read '{0}': {1}", file, buffer.getError().message());
    return log.import_lines((*buffer)->getBuffer(), file);
  });
}

Expected<int> merge(const LogArgs& args, TuningLog& log, Console& console) {
  return take_in(args, log, console, [&](const std::string& file) -> Expected<int64_t> {
    TW_ASSIGN(TuningLog other, TuningLog::open(file, TuningLog::Mode::read));
    return log.merge(other);
  });
}

// Takes rejected records into account again.
Expected<int> accept(const LogArgs& args, TuningLog& log, Console& console) {
  LogFilter filter = filter_of(args);
  filter.rejected = true;
  std::vector<std::string> ids;
  TW_TRY(log.each(filter, [&](const Record& record) {
    ids.push_back(record_id(record));
    return Error::success();
  }));
  TW_ASSIGN(const int64_t accepted, log.mark(ids, false));
  if (console.json) write_json(console, Json::Object{{"log", log.path()}, {"accepted", accepted}});
  else console.out << log.path() << ": " << accepted << " records count again\n";
  return kExitOk;
}

Expected<int> prune(const LogArgs& args, TuningLog& log, Console& console) {
  PruneOptions options{args.keep, args.other_languages, std::nullopt};
  if (!args.before.empty()) {
    options.before = date_from_text(args.before);
    if (!options.before)
      return make_error(DiagCode::invalid_argument, "--before '{0}' is no date like 2026-01-31",
                        args.before);
  }
  if (!options.keep && !options.before && !options.other_languages)
    return make_error(DiagCode::invalid_argument,
                      "log prune drops nothing without --keep, --before or --other-languages");
  TW_ASSIGN(const int64_t dropped, log.prune(options));
  TW_ASSIGN(const int64_t records, log.count());
  if (console.json)
    write_json(console,
               Json::Object{{"log", log.path()}, {"dropped", dropped}, {"records", records}});
  else console.out << log.path() << ": " << dropped << " records dropped, " << records << " left\n";
  return kExitOk;
}

Expected<int> diff_logs(const LogArgs& args, TuningLog& log, Console& console) {
  TW_ASSIGN(TuningLog other, TuningLog::open(args.files[0], TuningLog::Mode::read));
  TW_ASSIGN(const std::vector<LogDifference> found, diff(log, other));
  Json::Array list;
  for (const LogDifference& d : found) {
    if (console.json) {
      list.push_back(Json::Object{{"key", to_json(d.key)},
                                  {"ours", d.ours ? to_json(*d.ours) : Json()},
                                  {"theirs", d.theirs ? to_json(*d.theirs) : Json()}});
      continue;
    }
    TW_ASSIGN(std::string name, name_of_task(log, d.key.task));
    if (name.empty()) { TW_ASSIGN(name, name_of_task(other, d.key.task)); }
    console.out << key_text(d.key) << "  " << name << "\n  ours   " << best_text(d.ours)
                << "\n  theirs " << best_text(d.theirs) << "\n";
  }
  if (console.json)
    write_json(console,
               Json::Object{{"ours", log.path()}, {"theirs", other.path()}, {"differences", list}});
  else console.out << found.size() << " keys differ\n";
  return kExitOk;
}

enum class FileUse : uint8_t { none, read, written };
struct Action {
  const char* name;
  TuningLog::Mode mode;
  FileUse file_use;
  size_t least_files, most_files;
  const char* files;
  Expected<int> (*run)(const LogArgs&, TuningLog&, Console&);
};
constexpr size_t kMany = 1000000;
constexpr std::array<Action, 9> kActions = {{
    {"show", TuningLog::Mode::read, FileUse::none, 0, 0, "no file", show},
    {"best", TuningLog::Mode::read, FileUse::none, 0, 0, "no file", best},
    {"export", TuningLog::Mode::read, FileUse::written, 0, 1,
     "the file to write, or none for standard output", export_log},
    {"import", TuningLog::Mode::write, FileUse::read, 1, kMany,
     "files of JSON lines, - for standard input", import_log},
    {"merge", TuningLog::Mode::write, FileUse::read, 1, kMany, "other logs", merge},
    {"accept", TuningLog::Mode::write, FileUse::none, 0, 0, "no file", accept},
    {"prune", TuningLog::Mode::write, FileUse::none, 0, 0, "no file", prune},
    {"diff", TuningLog::Mode::read, FileUse::read, 1, 1, "another log", diff_logs},
    {"replay", TuningLog::Mode::read, FileUse::none, 1, 1, "a record's identity", replay},
}};

Error check_files(const LogArgs& args, const Action& action, const std::string& log) {
  FileRoles files;
  if (action.mode == TuningLog::Mode::read) files.reads("the log", log);
  for (const std::string& file : args.files)
    if (action.file_use == FileUse::read) files.reads("what is taken in", file);
  if (action.mode == TuningLog::Mode::write) files.writes("the log", log);
  for (const std::string& file : args.files)
    if (action.file_use == FileUse::written) files.writes("what is exported", file);
  return files.check();
}

Expected<int> log_command(const LogArgs& args, Console& console) {
  const auto action = std::ranges::find_if(kActions,
                                           [&](const Action& a) { return args.action == a.name; });
  if (action == kActions.end())
    return wrong_word("log", args.action,
                      "show, best, export, import, merge, accept, prune, diff, replay");
  if (args.files.size() < action->least_files || args.files.size() > action->most_files)
    return make_error(DiagCode::invalid_argument, "log {0} takes {1}", action->name, action->files);
  const std::string path = args.log.empty() ? default_log() : args.log;
  if (path.empty())
    return make_error(DiagCode::invalid_argument,
                      "there is no home directory to look for a tuning log in: --log names one");
  TW_TRY(check_files(args, *action, path));
  TW_ASSIGN(TuningLog log, TuningLog::open(path, action->mode));
  return action->run(args, log, console);
}

}  // namespace

CommandRun define_log(Flags& flags) {
  auto args = std::make_shared<LogArgs>();
  flags.argument("ACTION", args->action,
                 "show: what is known of each key; best: the best schedule of each; export FILE, "
                 "import FILE..: JSON lines; "
                 "merge LOG..; accept: rejected records count again; prune; diff LOG; replay ID: "
                 "measures a record again, from the log "
                 "alone");
  flags.arguments("FILE", args->files, "Of export, import, merge and diff; ID of replay");
  flags.text(
      "--log", args->log, "FILE",
      "The tuning log; default: tilewright/tilewright.db in XDG_DATA_HOME or ~/.local/share");
  flags.text("--task", args->task, "KEY", "Of show, best, export and accept: only this task");
  flags.text("--target", args->target, "KEY", "Of show, best, export and accept: only this target");
  flags.text("--kernel", args->kernel, "ID",
             "Of show: the task, the kernel and the schedule of the record whose identity begins "
             "so");
  flags.text("-t", args->machine, "NAME|FILE", "Of replay: the record's target");
  flags.optional_integer("--threads", args->threads,
                         "Of show, best, export and accept: only records of so many threads", 1);
  flags.optional_integer(
      "--keep", args->keep,
      "Of prune: the best N of each key and kernel; what failed or is rejected goes too", 1);
  flags.text("--before", args->before, "DATE", "Of prune: drop what is older, 2026-01-31");
  flags.flag("--other-languages", args->other_languages,
             "Of prune: drop records of other versions of the schedule language");
  return [args](Console& console) { return log_command(*args, console); };
}

}  // namespace tw
