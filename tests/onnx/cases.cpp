#include "tests/onnx/cases.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "packager/output_file.h"
#include "support/json.h"

namespace tw::onnx_suite {
namespace {

constexpr const char* kNotYetHead =
    "# What does not pass yet, and in which ways, and why; this file only shrinks. Written by "
    "`test_onnx --update`; a case here that passes fails the run.\n";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// Returns the lines of a list, without comments and empty lines.
Expected<std::vector<std::string>> list_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) return make_error(DiagCode::io, "cannot read '{0}'", path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (line = trimmed(line); !line.empty() && line[0] != '#') lines.push_back(line);
  return lines;
}

void read_data(Case& c) {
  std::ifstream file(c.folder + "/data.json");
  if (!file) return;
  const std::string text(std::istreambuf_iterator<char>(file), {});
  auto json = parse_json(text, c.folder + "/data.json");
  if (!json) return llvm::consumeError(json.takeError());
  c.rtol = (*json)["rtol"].number_or(c.rtol);
  c.atol = (*json)["atol"].number_or(c.atol);
  if (const Json::Object* dims = (*json)["dims"].object())
    for (const auto& [name, count] : *dims) c.dims[name] = count.integer_or(0);
  if (const Json::Array* empty = (*json)["empty"].array())
    for (const Json& name : *empty) c.empty.insert(name.text_or_empty());
}

}  // namespace

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::fixed: return "static";
    case Mode::symbolic: return "symbolic";
    case Mode::constant: return "constant";
  }
  TW_UNREACHABLE("mode {0}", static_cast<int>(mode));
}

Expected<std::set<Mode>> parse_modes(const std::string& text) {
  std::set<Mode> modes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const auto mode = std::find_if(kModes.begin(), kModes.end(),
                                   [&](Mode m) { return word == mode_name(m); });
    if (mode == kModes.end())
      return make_error(DiagCode::invalid_argument, "'{0}' is none of static, symbolic, constant",
                        word);
    modes.insert(*mode);
    begin = end + 1;
  }
  return modes;
}

std::string Case::model(Mode mode) const {
  return folder + "/" + (mode == Mode::fixed ? "model" : mode_name(mode)) + ".onnx";
}

Expected<std::vector<Case>> find_cases(const std::string& folder) {
  std::vector<Case> cases;
  std::error_code failed;
  for (const auto& kind : std::filesystem::directory_iterator(folder, failed))
    for (const auto& one : std::filesystem::directory_iterator(kind.path(), failed))
      if (std::filesystem::exists(one.path() / "model.onnx"))
        cases.push_back({kind.path().filename().string() + "/" + one.path().filename().string(),
                         one.path().string()});
  if (cases.empty())
    return make_error(DiagCode::io, "no cases in '{0}': tests/onnx/export.py writes them", folder);
  for (Case& c : cases) read_data(c);
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.id < b.id; });
  return cases;
}

bool glob_matches(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

Expected<Excluded> Excluded::read(const std::string& path) {
  Excluded list;
  TW_ASSIGN(const std::vector<std::string> lines, list_lines(path));
  for (const std::string& line : lines) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos)
      return make_error(DiagCode::parse, "{0}: no reason in '{1}'", path, line);
    const std::string head = line.substr(0, colon);
    const size_t space = head.find(' ');
    Line entry{head.substr(0, space), {kModes.begin(), kModes.end()}};
    if (space != std::string::npos) {
      TW_ASSIGN(entry.modes, parse_modes(trimmed(head.substr(space))));
    }
    list.lines_.push_back(std::move(entry));
  }
  return list;
}

bool Excluded::has(const std::string& id, Mode mode) const {
  return std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) {
    return line.modes.count(mode) && glob_matches(line.glob, id);
  });
}

std::vector<std::string> Excluded::unused(const std::vector<Case>& cases) const {
  std::vector<std::string> globs;
  for (const Line& line : lines_)
    if (std::none_of(cases.begin(), cases.end(),
                     [&](const Case& c) { return glob_matches(line.glob, c.id); }))
      globs.push_back(line.glob);
  return globs;
}

Expected<NotYet> NotYet::read(const std::string& path) {
  NotYet list;
  TW_ASSIGN(const std::vector<std::string> lines, list_lines(path));
  for (const std::string& line : lines) {
    const size_t space = line.find(' ');
    if (space == std::string::npos)
      return make_error(DiagCode::parse, "{0}: no modes in '{1}'", path, line);
    const size_t colon = std::min(line.find(": ", space), line.size());
    NotYet::Entry& entry = list.cases[line.substr(0, space)];
    TW_ASSIGN(entry.modes, parse_modes(trimmed(line.substr(space, colon - space))));
    entry.reason = line.substr(std::min(colon + 2, line.size()));
  }
  return list;
}

bool NotYet::has(const std::string& id, Mode mode) const {
  const auto found = cases.find(id);
  return found != cases.end() && found->second.modes.count(mode);
}

Error NotYet::write(const std::string& path) const {
  std::string text = kNotYetHead;
  for (const auto& [id, entry] : cases) {
    std::string words;
    for (Mode mode : entry.modes)
      words += (words.empty() ? " " : ",") + std::string(mode_name(mode));
    text += id + words + ": " + entry.reason + "\n";
  }
  return write_file(path, text);
}

}  // namespace tw::onnx_suite
