// Texts of kernels and tasks, each stored once, and the lines in which logs are exchanged
#include <set>

#include "autotune/log.h"
#include "support/json.h"

namespace tw {
namespace {

constexpr size_t kMostText = 16 << 20;

const char* table_of(TuningLog::Text kind) {
  return kind == TuningLog::Text::kernel ? "kernels" : "tasks";
}
const char* word_of(TuningLog::Text kind) {
  return kind == TuningLog::Text::kernel ? "kernel" : "task";
}
constexpr TuningLog::Text kTexts[] = {TuningLog::Text::kernel, TuningLog::Text::task};

bool is_key(const std::string& key) {
  return key.size() == 16 && key.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Error TuningLog::insert_text(Text kind, const std::string& key, const std::string& text) {
  if (!is_key(key) || text.empty() || text.size() > kMostText)
    return make_error(DiagCode::parse,
                      "the text of a {0} has a key of 16 hex digits and at most {1} bytes",
                      word_of(kind), kMostText);
  TW_ASSIGN(sql::Statement s, database_.statement(std::string("INSERT OR IGNORE INTO ") +
                                                  table_of(kind) + " (key, text) VALUES (?, ?)"));
  s.bind(1, key);
  s.bind(2, text);
  return s.step() == SQLITE_DONE ? Error::success() : database_.failed();
}

Error TuningLog::keep(Text kind, const std::string& key, const std::string& text) {
  return database_.in_transaction(sql::kWrite, [&] { return insert_text(kind, key, text); });
}

Expected<std::optional<std::string>> TuningLog::text(Text kind, const std::string& key) {
  if (version_ < 3) return std::optional<std::string>();
  TW_ASSIGN(sql::Statement s, database_.statement(std::string("SELECT text FROM ") +
                                                  table_of(kind) + " WHERE key = ?"));
  s.bind(1, key);
  const int code = s.step();
  if (code == SQLITE_DONE) return std::optional<std::string>();
  if (code != SQLITE_ROW) return database_.failed();
  return std::optional<std::string>(s.text(0));
}

Error TuningLog::each_text(
    Text kind, const std::function<Error(const std::string& key, const std::string& text)>& visit) {
  if (version_ < 3) return Error::success();
  TW_ASSIGN(sql::Statement s, database_.statement(std::string("SELECT key, text FROM ") +
                                                  table_of(kind) + " ORDER BY key"));
  int code = SQLITE_OK;
  while ((code = s.step()) == SQLITE_ROW) TW_TRY(visit(s.text(0), s.text(1)));
  return code == SQLITE_DONE ? Error::success() : database_.failed();
}

Expected<int64_t> TuningLog::export_lines(
    const LogFilter& filter, const std::function<Error(const std::string& line)>& write) {
  int64_t count = 0;
  std::set<std::string> used;  // hashes of kernels, and keys of tasks
  TW_TRY(each(filter, [&](const Record& record) {
    ++count;
    used.insert(record.kernel_hash);
    used.insert(record.key.task);
    return write(print(record));
  }));
  for (const Text kind : kTexts)
    TW_TRY(each_text(kind, [&](const std::string& key, const std::string& text) -> Error {
      if (!used.contains(key)) return Error::success();
      return write(dump(Json::Object{{word_of(kind), key}, {"text", text}}, -1));
    }));
  return count;
}

// The result is the number of new records, 0 or 1.
Expected<int64_t> TuningLog::import_line(std::string_view line, const std::string& place) {
  TW_ASSIGN(const Json json, parse_json(line, place));
  if (!json["text"].text()) {
    TW_ASSIGN(const Record record, parse_record(line, place));
    TW_ASSIGN(const bool fresh, insert(record));
    return fresh;
  }
  for (const Text kind : kTexts)
    if (const std::string* key = json[word_of(kind)].text()) {
      if (Error error = insert_text(kind, *key, *json["text"].text()))
        return make_error(DiagCode::parse, "'{0}': {1}", place, error_text(std::move(error)));
      return 0;
    }
  return make_error(DiagCode::parse, "'{0}': a text is of a kernel or of a task", place);
}

Expected<int64_t> TuningLog::import_lines(std::string_view text, const std::string& file) {
  int64_t added = 0, line = 0;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view one = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      ++line;
      if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      TW_ASSIGN(const int64_t fresh, import_line(one, file + ":" + std::to_string(line)));
      added += fresh;
    }
    return Error::success();
  }));
  return added;
}

Expected<int64_t> TuningLog::merge(TuningLog& other) {
  TW_ASSIGN(const std::vector<Record> records, other.all());
  int64_t added = 0;
  TW_TRY(database_.in_transaction(sql::kWrite, [&]() -> Error {
    for (const Record& record : records) {
      TW_ASSIGN(const bool fresh, insert(record));
      added += fresh;
    }
    for (const Text kind : kTexts)
      TW_TRY(other.each_text(kind, [&](const std::string& key, const std::string& text) {
        return insert_text(kind, key, text);
      }));
    return Error::success();
  }));
  return added;
}

}  // namespace tw
