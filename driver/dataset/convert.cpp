#include "driver/dataset/convert.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <span>
#include <tuple>

#include "autotune/task_text.h"
#include "driver/dataset/set_programs.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/schedule.h"
#include "kernels/arranged.h"
#include "support/parallel.h"

namespace tw {
namespace {

enum class Role : uint8_t { stage, loop, buffer };
// The names of one kernel, by their role, to those of another
using Names = std::map<std::pair<Role, std::string>, std::string>;

struct Word {
  std::string_view text;
  bool is_name = false;
  Role role = Role::loop;
};

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_name(char c) {
  return begins_name(c) || std::isdigit(static_cast<unsigned char>(c));
}

// Without indices that are 0: dimensions of one element may be there or not.
std::vector<Word> without_zeros(const std::vector<Word>& words) {
  const auto is_end = [](const Word& word) { return word.text == "," || word.text == "]"; };
  std::vector<Word> out;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool begins = !out.empty() && (out.back().text == "[" || out.back().text == ",");
    if (begins && words[i].text == "0" && i + 1 < words.size() && is_end(words[i + 1])) {
      if (words[i + 1].text == ",") ++i;
      else if (out.back().text == ",") out.pop_back();
      continue;
    }
    out.push_back(words[i]);
  }
  return out;
}

// The words of a kernel's body, where a name before a colon is a stage and one before a bracket a
// buffer
std::vector<Word> words_of(std::string_view body) {
  std::vector<Word> words;
  for (size_t at = 0; at < body.size();) {
    if (std::isspace(static_cast<unsigned char>(body[at]))) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    const bool name = begins_name(body[at]);
    if (name || std::isdigit(static_cast<unsigned char>(body[at])))
      while (end < body.size() && (continues_name(body[end]) || (!name && body[end] == '.'))) ++end;
    Word word{body.substr(at, end - at), name};
    if (end < body.size() && body[end] == ':') word.role = Role::stage;
    if (end < body.size() && body[end] == '[') word.role = Role::buffer;
    words.push_back(word);
    at = end;
  }
  return without_zeros(words);
}

// The statements of a kernel's text, without its parameters and temps
std::string_view body_of(std::string_view text) {
  size_t at = text.find('\n') + 1;
  while (text.substr(at).starts_with("  temp ")) at = text.find('\n', at) + 1;
  return text.substr(at);
}

std::string_view line_around(std::string_view text, const std::vector<Word>& words, size_t index) {
  const char* at = words[std::clamp<size_t>(index, 1, words.size()) - 1].text.data();
  const auto place = static_cast<size_t>(at - text.data());
  const size_t begin = text.rfind('\n', place) + 1;
  return text.substr(begin, text.find('\n', place) - begin);
}

// Two bodies are walked together. A loop of one iteration may stand on the left side alone, because
// its dimension does: it has no name on the right.
class Walk {
 public:
  Walk(std::vector<Word> left, std::vector<Word> right)
      : left_(std::move(left)), right_(std::move(right)) {}
  // False: the bodies differ in more than names, at `left_at` and `right_at`.
  bool run() {
    while (left_at < left_.size() && right_at < right_.size()) {
      if (skip_alone()) continue;
      const Word &a = left_[left_at], &b = right_[right_at];
      if (a.is_name != b.is_name || (!a.is_name && a.text != b.text)) return false;
      if (a.is_name && (a.role != b.role || !same(a, std::string(b.text)))) return false;
      if (a.text == "{") ++depth_;
      if (a.text == "}") --depth_;
      ++left_at, ++right_at;
    }
    while (left_at < left_.size() && skip_alone()) {}
    return left_at == left_.size() && right_at == right_.size();
  }
  size_t left_at = 0, right_at = 0;
  Names names;
  const std::vector<Word>& left() const { return left_; }
  const std::vector<Word>& right() const { return right_; }

 private:
  static bool single(const std::vector<Word>& words, size_t at) {
    return at + 4 < words.size() && words[at].text == "for" && words[at + 2].text == "in" &&
           words[at + 3].text == "1" && words[at + 4].text == "{";
  }
  bool same(const Word& from, const std::string& to) {
    return names.emplace(std::pair(from.role, std::string(from.text)), to).first->second == to;
  }
  bool skip_alone() {
    if (single(left_, left_at) && !single(right_, right_at)) {
      same(left_[left_at + 1], "");
      alone_.push_back(depth_);
      left_at += 5;
      return true;
    }
    const auto known = names.find({Role::loop, std::string(left_[left_at].text)});
    if (known != names.end() && known->second.empty()) {  // an index that the right has not
      left_at += left_at + 1 < left_.size() && left_[left_at + 1].text == "," ? 2 : 1;
      return true;
    }
    if (alone_.empty() || alone_.back() != depth_ || left_[left_at].text != "}") return false;
    alone_.pop_back();
    ++left_at;
    return true;
  }

  std::vector<Word> left_, right_;
  int depth_ = 0;
  std::vector<int> alone_;  // depths in which a loop stands on the left side alone
};

// Errors: the bodies differ in more than names.
Expected<Names> names_between(const Kernel& from, const Kernel& to) {
  const std::string from_text = print(from), to_text = print(to);
  Walk walk(words_of(body_of(from_text)), words_of(body_of(to_text)));
  if (walk.run()) return std::move(walk.names);
  return make_error(DiagCode::unsupported, "the kernels differ in more than names: '{0}' and '{1}'",
                    line_around(from_text, walk.left(), walk.left_at),
                    line_around(to_text, walk.right(), walk.right_at));
}

// The roles of a step's words, in order; the last one stands for all that follow.
struct StepRoles {
  const char* keyword;
  std::vector<Role> roles;
};
std::span<const Role> roles_of(std::string_view keyword) {
  static const std::array<StepRoles, 11> kRoles = {{
      {"compute_at", {Role::stage, Role::loop}},
      {"compute_inline", {Role::stage}},
      {"decompose_reduction", {Role::stage, Role::loop}},
      {"set_scope", {Role::buffer}},
      {"cache_read", {Role::buffer, Role::stage}},
      {"cache_write", {Role::stage}},
      {"rfactor", {Role::stage, Role::loop}},
      {"prefetch", {Role::buffer, Role::loop}},
      {"layout", {Role::buffer, Role::loop}},
      {"compute_root", {Role::stage}},
      {"reverse_compute_at", {Role::stage, Role::loop}},
  }};
  static const std::array<Role, 1> kLoops = {Role::loop};
  for (const StepRoles& one : kRoles)
    if (keyword == one.keyword) return one.roles;
  return kLoops;
}

// The step's text with the other kernel's names. A word that is no name of the kernel stays: a new
// name, or a word of the language.
std::string renamed(const std::string& step, const Names& names) {
  const size_t end = step.find(' ');
  const std::span<const Role> roles = roles_of(std::string_view(step).substr(0, end));
  std::string out = step.substr(0, end);
  size_t number = 0;
  for (size_t at = std::min(end, step.size()); at < step.size();) {
    size_t stop = at + 1;
    const bool whole = begins_name(step[at]) && !continues_name(step[at - 1]);
    if (!whole) {
      out += step[at++];
      continue;
    }
    while (stop < step.size() && continues_name(step[stop])) ++stop;
    const std::string word = step.substr(at, stop - at);
    const Role role = roles[std::min(number++, roles.size() - 1)];
    const auto known = names.find({role, word});
    if (known == names.end()) out += word;
    else if (!known->second.empty()) out += known->second;
    else out.pop_back();  // the space before a loop that the other kernel does not have
    at = stop;
  }
  return out;
}

// Converts programs of one task.
class ProgramConverter {
 public:
  // Errors: the definition, arranged for the target, is another kernel than the old one.
  static Expected<ProgramConverter> create(const LearningTask& old, const LoweredGroup& lowered,
                                           const Target& target) {
    TW_ASSIGN(Kernel kernel, parse_kernel(old.kernel_text, "the kernel of task " + old.key));
    TW_ASSIGN(ArrangedKernel begun, arranged(lowered, target));
    TW_TRY(names_between(kernel, begun.run.kernel).takeError());
    return ProgramConverter(std::move(kernel), std::move(begun), target);
  }
  // The text of a whole schedule of the kernel as defined. Errors: a step that is not legal now, or
  // a kernel that differs behind it.
  Expected<std::string> converted(const std::string& text) const {
    TW_ASSIGN(const Schedule schedule, parse_schedule(text));
    Kernel from = old_, to = begun_.run.kernel;
    Schedule rest;
    for (const Step& step : schedule.steps) {
      TW_ASSIGN(const Names names, names_between(from, to));
      TW_ASSIGN(const Schedule one,
                parse_schedule("schedule {\n  " + renamed(print(step), names) + "\n}\n"));
      rest.steps.push_back(one.steps.front());
      TW_ASSIGN(from, apply(from, step, target_));
      TW_ASSIGN(to, apply(to, rest.steps.back(), target_));
    }
    TW_TRY(names_between(from, to).takeError());
    return print(continued(begun_, rest));
  }

 private:
  ProgramConverter(Kernel old, ArrangedKernel begun, const Target& target)
      : old_(std::move(old)), begun_(std::move(begun)), target_(&target) {}
  Kernel old_;
  ArrangedKernel begun_;
  const Target* target_;
};

class SetConverter {
 public:
  SetConverter(DataSet& from, DataSet& to, const ConvertRequest& request)
      : from_(from), to_(to), request_(request), targets_(request.target_folders) {}

  Expected<ConvertCounts> run() {
    TW_ASSIGN(const std::vector<LearningTask> tasks, from_.tasks());
    TW_ASSIGN(const std::vector<Platform> platforms, from_.platforms());
    for (const LearningTask& listed : tasks) {
      TW_ASSIGN(LearningTask task, from_.task(listed.id));
      if (Error error = convert(task, platforms)) {
        ++counts_.lost_tasks;
        counts_.reasons.push_back(task.name + ": " + error_text(std::move(error)));
      } else {
        ++counts_.tasks;
      }
    }
    return counts_;
  }

 private:
  Error convert(LearningTask task, const std::vector<Platform>& platforms) {
    TW_ASSIGN(const ParsedTask parsed, parse_task(task.text, "task " + task.key));
    TW_ASSIGN(const Target* target, targets_.find(task.lowered_for));
    const Target& place = target->main_device();
    TW_ASSIGN(const Task lowered, lower_task(parsed, place, task.algorithm));
    const LoweredGroup& group = lowered.variants.front().lowered;
    TW_ASSIGN(const ProgramConverter converter, ProgramConverter::create(task, group, place));
    const int64_t from = task.id;
    TW_ASSIGN(const std::vector<LearningProgram> old, from_.programs(from));
    task.key = lowered.key;
    task.kernel = kernel_hash(group.kernel), task.kernel_text = print(group.kernel);
    TW_TRY(to_.add(task).takeError());
    TW_ASSIGN(task.id, id_of(task));
    if (task.complete) TW_TRY(to_.set_complete(task.id));
    TW_ASSIGN(const Ids ids, add_programs(task, old, converter));
    for (const Platform& platform : platforms) TW_TRY(add_labels(platform, from, ids));
    return Error::success();
  }

  Expected<int64_t> id_of(const LearningTask& task) {
    TW_ASSIGN(const std::vector<LearningTask> all, to_.tasks());
    const auto identity = [](const LearningTask& t) {
      return std::tie(t.key, t.lowered_for, t.algorithm);
    };
    return std::ranges::find_if(
               all, [&](const LearningTask& t) { return identity(t) == identity(task); })
        ->id;
  }

  using Ids = std::map<int64_t, int64_t>;  // new programs by their old ids
  Expected<Ids> add_programs(const LearningTask& task, const std::vector<LearningProgram>& old,
                             const ProgramConverter& converter) {
    std::vector<std::string> texts(old.size()), reasons(old.size());
    TW_TRY(parallel_for(request_.jobs, old.size(), [&](size_t i) -> Error {
      if (Expected<std::string> text = converter.converted(old[i].schedule)) texts[i] = *text;
      else reasons[i] = error_text(text.takeError());
      return Error::success();
    }));
    const auto first = std::ranges::find_if(reasons, [](const auto& r) { return !r.empty(); });
    if (first != reasons.end()) counts_.reasons.push_back(task.name + ", some programs: " + *first);
    std::vector<LearningProgram> programs;
    Ids ids;
    for (size_t i = 0; i < old.size(); ++i) {
      if (texts[i].empty()) continue;
      programs.push_back({program_id(task, texts[i]), old[i].source, texts[i]});
      ids.emplace(old[i].id, programs.back().id);
    }
    counts_.programs += static_cast<int64_t>(programs.size());
    counts_.lost_programs += static_cast<int64_t>(old.size() - programs.size());
    TW_TRY(to_.add_programs(task.id, programs));
    return ids;
  }

  Error add_labels(const Platform& platform, int64_t task, const Ids& ids) {
    const int64_t from = platform.id;
    TW_ASSIGN(const int64_t to, to_.platform(platform));
    for (const int pass : {0, 1}) {
      TW_ASSIGN(std::vector<Label> labels, from_.labels(from, task, pass));
      std::erase_if(labels, [&](const Label& l) { return !ids.contains(l.program); });
      for (Label& l : labels) l.program = ids.at(l.program);
      TW_TRY(to_.add_labels(to, labels));
    }
    return Error::success();
  }

  DataSet &from_, &to_;
  const ConvertRequest& request_;
  NamedTargets targets_;
  ConvertCounts counts_;
};

}  // namespace

Expected<ConvertCounts> convert_set(DataSet& from, DataSet& to, const ConvertRequest& request) {
  return SetConverter(from, to, request).run();
}

}  // namespace tw
