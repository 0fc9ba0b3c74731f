// A recursive descent parser makes a tree, from which instructions are written: Thompson's
// construction.
#include "frontend/onnx/ops/strings/regex.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace tw::onnx_import {
namespace {

constexpr int32_t kLastCharacter = 0x10FFFF;
constexpr int kMostNested = 200, kMostRepeats = 1000;
constexpr size_t kMostInstructions = 20'000, kMostVisits = 1'000'000;

using Ranges = std::vector<std::pair<int32_t, int32_t>>;  // ranges of characters

Ranges merged(Ranges set) {
  std::ranges::sort(set);
  Ranges out;
  for (const auto& range : set)
    if (!out.empty() && range.first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, range.second);
    else out.push_back(range);
  return out;
}

Ranges complement(const Ranges& set) {
  Ranges out;
  int32_t next = 0;
  for (const auto& [first, last] : merged(set)) {
    if (first > next) out.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCharacter) out.emplace_back(next, kLastCharacter);
  return out;
}

const Ranges kDigits = {{'0', '9'}}, kBlanks = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
             kWords = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

std::optional<Ranges> named_class(const std::string& name) {
  static const std::map<std::string, Ranges> classes = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 127}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 31}, {127, 127}}},
      {"digit", kDigits},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", kWords},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  const auto found = classes.find(name);
  return found == classes.end() ? std::nullopt : std::optional(found->second);
}

enum class Operation : int32_t { end, split, jump, set, begin, finish, word, no_word };

// A part of an expression.
struct Part {
  enum class Kind : uint8_t { set, place, sequence, choice, repeat };
  Kind kind = Kind::sequence;
  Ranges set;                          // set
  Operation place = Operation::begin;  // place: a condition between two characters
  int least = 0, most = -1;            // repeat; -1: without end
  std::vector<std::unique_ptr<Part>> parts;
};
using PartPtr = std::unique_ptr<Part>;

class RegexParser {
 public:
  explicit RegexParser(const std::string& text) : text_(text) {}

  Expected<PartPtr> parse() {
    PartPtr part = choice(0);
    if (problem_.empty() && at_ < text_.size()) fail("a ')' without its '('");
    if (problem_.empty()) return part;
    return make_error(DiagCode::unsupported, "{0}, at character {1} of '{2}'", problem_, at_,
                      text_);
  }

 private:
  void fail(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  bool more() const { return problem_.empty() && at_ < text_.size(); }
  bool next_is(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }
  bool take(std::string_view word) {
    if (!more() || !next_is(word)) return false;
    at_ += word.size();
    return true;
  }

  int32_t character() {
    const auto byte = [&](size_t i) {
      return i < text_.size() ? static_cast<uint8_t>(text_[i]) : uint8_t{0};
    };
    const uint8_t first = byte(at_);
    const int behind = first < 0x80   ? 0
                       : first < 0xC2 ? -1
                       : first < 0xE0 ? 1
                       : first < 0xF0 ? 2
                       : first < 0xF5 ? 3
                                      : -1;
    int32_t value = behind <= 0 ? first : first & (0x3F >> behind);
    for (int i = 1; i <= behind; ++i) {
      if ((byte(at_ + static_cast<size_t>(i)) & 0xC0) != 0x80) return fail("no UTF-8"), 0;
      value = value << 6 | (byte(at_ + static_cast<size_t>(i)) & 0x3F);
    }
    if (behind < 0) return fail("no UTF-8"), 0;
    at_ += static_cast<size_t>(behind) + 1;
    return value;
  }

  PartPtr choice(int depth) {
    auto out = std::make_unique<Part>();
    out->kind = Part::Kind::choice;
    if (depth > kMostNested) return fail("more than 200 groups in each other"), std::move(out);
    const bool fold = fold_, dot_all = dot_all_;
    do out->parts.push_back(sequence(depth));
    while (take("|"));
    fold_ = fold, dot_all_ = dot_all;
    return out;
  }

  PartPtr sequence(int depth) {
    auto out = std::make_unique<Part>();
    while (more() && !next_is("|") && !next_is(")")) {
      PartPtr one = item(depth);
      if (one) out->parts.push_back(repeated(std::move(one)));
    }
    return out;
  }

  PartPtr repeated(PartPtr part) {
    for (bool first = true; more(); first = false) {
      int least = 0, most = -1;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!next_is("{") || !counts(least, most)) {
        return part;
      }
      if (!first) return fail("a repetition of a repetition"), std::move(part);
      take("?");  // lazy: the same, as the whole string is matched
      auto out = std::make_unique<Part>();
      out->kind = Part::Kind::repeat;
      out->least = least, out->most = most;
      out->parts.push_back(std::move(part));
      part = std::move(out);
    }
    return part;
  }

  // {n}, {n,}, {n,m}; anything else is text.
  bool counts(int& least, int& most) {
    const size_t begin = at_++;
    const auto number = [&](int& value) {
      const size_t from = at_;
      for (value = 0; at_ < text_.size() && std::isdigit(static_cast<uint8_t>(text_[at_])); ++at_)
        value = std::min(value * 10 + (text_[at_] - '0'), kMostRepeats + 1);
      return at_ > from;
    };
    bool good = number(least);
    most = least;
    if (good && take(","))
      if (!number(most)) most = -1;
    good = good && take("}");
    if (!good) return at_ = begin, false;
    if (least > kMostRepeats || most > kMostRepeats || (most >= 0 && most < least))
      fail("a repetition that is not {n,m} with n <= m <= 1000");
    return true;
  }

  PartPtr group(int depth) {
    for (const char* around : {"?=", "?!", "?<=", "?<!"})
      if (next_is(around)) return fail(std::string("(") + around + " looks around"), nullptr;
    const bool fold = fold_, dot_all = dot_all_;
    if (take("?P<") || take("?<")) {
      const size_t end = text_.find('>', at_);
      if (end == std::string::npos) return fail("a group's name without '>'"), nullptr;
      at_ = end + 1;
    } else if (take("?")) {
      for (bool on = true; more() && !next_is(":") && !next_is(")");) {
        if (take("-")) on = false;
        else if (take("i")) fold_ = on;
        else if (take("s")) dot_all_ = on;
        else return fail(std::string("the flag '") + text_[at_] + "', of i and s"), nullptr;
      }
      if (take(")")) return nullptr;  // flags for the rest of the group around
      take(":");
    }
    PartPtr part = choice(depth + 1);
    fold_ = fold, dot_all_ = dot_all;
    if (!take(")")) fail("a '(' without its ')'");
    return part;
  }

  PartPtr place(Operation operation) {
    auto out = std::make_unique<Part>();
    out->kind = Part::Kind::place;
    out->place = operation;
    return out;
  }
  PartPtr set(Ranges ranges) {
    auto out = std::make_unique<Part>();
    out->kind = Part::Kind::set;
    out->set = merged(std::move(ranges));
    return out;
  }

  PartPtr item(int depth) {
    if (take("(")) return group(depth);
    if (take("^") || take("\\A")) return place(Operation::begin);
    if (take("$") || take("\\z")) return place(Operation::finish);
    if (take("\\b")) return place(Operation::word);
    if (take("\\B")) return place(Operation::no_word);
    if (take(".")) return set(dot_all_ ? complement({}) : complement({{'\n', '\n'}}));
    if (take("[")) return bracket();
    for (const char* sign : {"*", "+", "?"})
      if (next_is(sign))
        return fail(std::string("a '") + sign + "' with nothing to repeat"), nullptr;
    if (next_is("\\")) {
      if (const auto ranges = class_escape()) return set(*ranges);
      return set(folded(escape()));
    }
    return set(folded(character()));
  }

  Ranges folded(int32_t c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (fold_ && c > 127) fail("(?i) with a letter beyond ASCII");
    return fold_ && letter ? Ranges{{c | 32, c | 32}, {c & ~32, c & ~32}} : Ranges{{c, c}};
  }

  // Parses \d and the like.
  std::optional<Ranges> class_escape() {
    for (const auto& [letter, ranges] :
         {std::pair('d', &kDigits), std::pair('s', &kBlanks), std::pair('w', &kWords)}) {
      if (take(std::string("\\") + letter)) return *ranges;
      if (take(std::string("\\") + static_cast<char>(letter - 32))) return complement(*ranges);
    }
    return std::nullopt;
  }

  int32_t escape() {
    ++at_;
    if (!more()) return fail("a '\\' at the end"), 0;
    static const std::map<char, int32_t> signs = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'},
                                                  {'f', '\f'}, {'v', '\v'}, {'a', '\a'}};
    const char letter = text_[at_];
    if (const auto sign = signs.find(letter); sign != signs.end()) return ++at_, sign->second;
    if (letter == 'x') return hexadecimal();
    if (std::isdigit(static_cast<uint8_t>(letter)))
      return fail(std::string("\\") + letter + " refers to a group, or is an octal number"), 0;
    if (std::isalpha(static_cast<uint8_t>(letter))) return fail(std::string("\\") + letter), 0;
    return character();
  }

  int32_t hexadecimal() {
    ++at_;
    const bool braces = take("{");
    int32_t value = 0;
    size_t digits = 0;
    for (; more() && std::isxdigit(static_cast<uint8_t>(text_[at_])) && digits < (braces ? 6 : 2);
         ++at_, ++digits)
      value = value * 16 + (text_[at_] <= '9' ? text_[at_] - '0' : (text_[at_] | 32) - 'a' + 10);
    if (digits == 0 || (braces ? !take("}") : digits != 2) || value > kLastCharacter)
      fail("a \\x without its digits");
    return value;
  }

  PartPtr bracket() {
    const bool negated = take("^");
    Ranges ranges;
    for (bool first = true; problem_.empty(); first = false) {
      if (!more()) return fail("a '[' without its ']'"), nullptr;
      if (!first && take("]")) break;
      if (next_is("[:")) {
        add_named(ranges);
        continue;
      }
      if (const auto escaped = class_escape()) {
        ranges.insert(ranges.end(), escaped->begin(), escaped->end());
        continue;
      }
      add_range(ranges);
    }
    return set(negated ? complement(ranges) : std::move(ranges));
  }

  void add_named(Ranges& ranges) {
    const size_t end = text_.find(":]", at_);
    if (end == std::string::npos) return fail("a '[:' without its ':]'");
    std::string name = text_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with("^");
    const auto known = named_class(negated ? name.substr(1) : name);
    if (!known) return fail("the class [:" + name + ":]");
    at_ = end + 2;
    const Ranges all = negated ? complement(*known) : *known;
    ranges.insert(ranges.end(), all.begin(), all.end());
  }

  void add_range(Ranges& ranges) {
    const int32_t first = next_is("\\") ? escape() : character();
    int32_t last = first;
    if (next_is("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
      ++at_;
      last = next_is("\\") ? escape() : character();
    }
    if (last < first) return fail("a range from above to below");
    ranges.emplace_back(first, last);
    if (!fold_) return;
    if (last > 127) return fail("(?i) with a letter beyond ASCII");
    for (int32_t c = first; c <= last; ++c)
      for (const auto& other : folded(c)) ranges.push_back(other);
  }

  const std::string& text_;
  size_t at_ = 0;
  bool fold_ = false, dot_all_ = false;
  std::string problem_;
};

class RegexWriter {
 public:
  Expected<std::vector<int32_t>> write(const Part& part) {
    add(part);
    emit(Operation::end);
    if (code_.size() > kMostInstructions || visits_ > kMostVisits)
      return make_error(DiagCode::limit, "more than {0} instructions", kMostInstructions);
    const auto sets_at = static_cast<int32_t>(1 + 3 * code_.size());
    std::vector<int32_t> words = {static_cast<int32_t>(code_.size())};
    for (const Instruction& i : code_) {
      const bool set = i.operation == Operation::set;
      words.insert(words.end(),
                   {static_cast<int32_t>(i.operation), set ? sets_at + i.a : i.a, i.b});
    }
    words.insert(words.end(), sets_.begin(), sets_.end());
    return words;
  }

 private:
  struct Instruction {
    Operation operation;
    int32_t a, b;
  };
  size_t emit(Operation operation, int32_t a = 0, int32_t b = 0) {
    code_.push_back({operation, a, b});
    return code_.size() - 1;
  }
  int32_t here() const { return static_cast<int32_t>(code_.size()); }

  void add(const Part& part) {
    // Repetitions of nothing write no code, but take time
    if (code_.size() > kMostInstructions || ++visits_ > kMostVisits) return;
    switch (part.kind) {
      case Part::Kind::set: add_set(part.set); break;
      case Part::Kind::place: emit(part.place); break;
      case Part::Kind::sequence:
        for (const PartPtr& one : part.parts) add(*one);
        break;
      case Part::Kind::choice: add_choice(part); break;
      case Part::Kind::repeat: add_repeat(part); break;
    }
  }

  void add_set(const Ranges& ranges) {
    emit(Operation::set, static_cast<int32_t>(sets_.size()));
    sets_.push_back(static_cast<int32_t>(ranges.size()));
    for (const auto& [first, last] : ranges) sets_.push_back(first), sets_.push_back(last);
  }

  void add_choice(const Part& part) {
    std::vector<size_t> ends;
    for (size_t i = 0; i + 1 < part.parts.size(); ++i) {
      const size_t split = emit(Operation::split, here() + 1);
      add(*part.parts[i]);
      ends.push_back(emit(Operation::jump));
      code_[split].b = here();
    }
    add(*part.parts.back());
    for (size_t end : ends) code_[end].a = here();
  }

  void add_repeat(const Part& part) {
    for (int i = 0; i < part.least; ++i) add(*part.parts[0]);
    if (part.most < 0) {
      const size_t split = emit(Operation::split, here() + 1);
      add(*part.parts[0]);
      emit(Operation::jump, static_cast<int32_t>(split));
      code_[split].b = here();
      return;
    }
    std::vector<size_t> splits;
    for (int i = part.least; i < part.most && code_.size() <= kMostInstructions; ++i) {
      splits.push_back(emit(Operation::split, here() + 1));
      add(*part.parts[0]);
    }
    for (size_t split : splits) code_[split].b = here();
  }

  std::vector<Instruction> code_;
  std::vector<int32_t> sets_;
  size_t visits_ = 0;
};

}  // namespace

Expected<std::vector<int32_t>> compile_regex(const std::string& pattern) {
  TW_ASSIGN(const PartPtr part, RegexParser(pattern).parse());
  return RegexWriter().write(*part);
}

}  // namespace tw::onnx_import
