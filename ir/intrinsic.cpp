#include "ir/intrinsic.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

namespace tw {
namespace {

constexpr const char* kForms =
    "name(c, a, b), asm(\"text\", \"constraints\", c, a, b), or a list of such lines, each but the "
    "last 'value = name(...)'; operands: a name, &name for an address, a number, bytes(1, 0, ...)";

// The reason why the assembler may not get this text; "": it may. Directives can read files and
// leave the section. A word that begins with '.' may be a directive, also behind a label, a
// comment, an alternative or a prefix. So may a quoted name, and the text that LLVM puts in place
// of "${:...}".
std::string refused_assembly(std::string_view text) {
  for (const std::string_view part : {"\"", "$(", "$|", "$)", "${:"})
    if (text.find(part) != std::string_view::npos)
      return "no instruction has '" + std::string(part) + "'";
  const auto is_word = [&](size_t at) {
    return std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_';
  };
  // A '.' may follow an operand, whose name is a word: "${0}.4s", "${1:w}.s".
  const auto ends_operand = [&](size_t at) {
    const size_t begin = text.rfind('{', at);
    return text[at] == '}' && begin != std::string_view::npos && begin > 0 &&
           text[begin - 1] == '$' && std::isdigit(static_cast<unsigned char>(text[begin + 1]));
  };
  for (size_t at = 0; at < text.size(); ++at)
    if (text[at] == '.' && (at == 0 || !(is_word(at - 1) || ends_operand(at - 1))))
      return "directives of the assembler are not taken, and '" +
             std::string(text.substr(at, text.find_first_of(" \t\n;", at) - at)) + "' may be one";
  return "";
}

class LineParser {
 public:
  LineParser(std::string_view text, const Location& at) : text_(text), at_(at) {}

  Expected<EmitCalls::Call> call() {
    EmitCalls::Call call;
    TW_ASSIGN(call.callee, word());
    if (take('=')) {
      call.value = std::move(call.callee);
      TW_ASSIGN(call.callee, word());
    }
    if (!take('(')) return call;
    if (call.callee == "asm") {
      TW_ASSIGN(call.assembly, string());
      if (const std::string why = refused_assembly(call.assembly); !why.empty())
        return make_error({DiagCode::parse,
                           "emit '" + std::string(text_) + "': " + why,
                           at_,
                           {"instructions alone, as in asm(\"vpdpbusd $2, $1, $0\", ...)"}});
      if (!take(',')) return wrong("',' and the constraints");
      TW_ASSIGN(call.constraints, string());
      if (take(')')) return call;
      if (!take(',')) return wrong("',' or ')'");
    } else if (take(')')) {
      return call;
    }
    do {
      TW_ASSIGN(EmitCalls::Operand one, operand());
      call.operands.push_back(std::move(one));
    } while (take(','));
    if (!take(')')) return wrong("',' or ')'");
    return call;
  }

  // Parses "over 32". Nothing left means one thread.
  Expected<int64_t> threads() {
    skip();
    if (next_ == text_.size()) return 1;
    TW_ASSIGN(const std::string over, word());
    if (over != "over") return wrong("'over' and a number of threads, or the end");
    TW_ASSIGN(const int64_t count, number());
    skip();
    if (next_ != text_.size() || count < 1) return wrong("the end");
    return count;
  }

 private:
  Error wrong(const std::string& wanted) const {
    return make_error({DiagCode::parse,
                       "emit '" + std::string(text_) + "': " + wanted + " is expected at column " +
                           std::to_string(next_ + 1) + " of it",
                       at_,
                       {std::string("forms: ") + kForms}});
  }
  void skip() {
    while (next_ < text_.size() && text_[next_] == ' ') ++next_;
  }
  bool take(char c) {
    skip();
    if (next_ == text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  Expected<std::string> word() {
    skip();
    const size_t begin = next_;
    while (next_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[next_])) ||
                                    text_[next_] == '_' || text_[next_] == '.'))
      ++next_;
    if (next_ == begin) return wrong("a name");
    return std::string(text_.substr(begin, next_ - begin));
  }
  Expected<std::string> string() {
    if (!take('"')) return wrong("a text in double quotes");
    std::string out;
    for (; next_ < text_.size() && text_[next_] != '"'; ++next_) {
      if (text_[next_] == '\\' && next_ + 1 < text_.size()) {
        ++next_;
        out += text_[next_] == 'n' ? '\n' : text_[next_] == 't' ? '\t' : text_[next_];
      } else {
        out += text_[next_];
      }
    }
    if (!take('"')) return wrong("the closing quote");
    return out;
  }
  Expected<int64_t> number() {
    skip();
    int64_t value = 0;
    const char* begin = text_.data() + next_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return wrong("a number");
    next_ += static_cast<size_t>(end - begin);
    return value;
  }
  Expected<EmitCalls::Operand> operand() {
    skip();
    EmitCalls::Operand one;
    if (next_ < text_.size() &&
        (std::isdigit(static_cast<unsigned char>(text_[next_])) || text_[next_] == '-')) {
      one.kind = EmitCalls::OperandKind::number;
      TW_ASSIGN(one.number, number());
      return one;
    }
    if (take('&')) one.kind = EmitCalls::OperandKind::address;
    TW_ASSIGN(one.name, word());
    if (one.name != "bytes" || one.kind == EmitCalls::OperandKind::address || !take('('))
      return one;
    one.kind = EmitCalls::OperandKind::bytes;
    one.name.clear();
    do {
      TW_ASSIGN(const int64_t byte, number());
      if (byte < 0 || byte > 255) return wrong("a byte from 0 to 255");
      one.bytes.push_back(static_cast<uint8_t>(byte));
    } while (take(','));
    if (!take(')')) return wrong("',' or ')'");
    return one;
  }

  std::string_view text_;
  const Location& at_;
  size_t next_ = 0;
};

}  // namespace

const char* pair_rule_name(PairRule rule) {
  switch (rule) {
    case PairRule::in_order: return "in-order";
    case PairRule::second_first: return "second-first";
    case PairRule::to_odd: return "to-odd";
  }
  TW_UNREACHABLE("bad rule");
}

std::optional<PairRule> pair_rule_from_name(std::string_view name) {
  for (const PairRule rule : {PairRule::in_order, PairRule::second_first, PairRule::to_odd})
    if (name == pair_rule_name(rule)) return rule;
  return std::nullopt;
}

std::string EmitCalls::text() const {
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : "; ") + line;
  return all;
}

Expected<EmitCalls> parse_emit(std::vector<std::string> lines, const Location& at) {
  EmitCalls emit;
  emit.at = at;
  for (const std::string& line : lines) {
    LineParser parser(line, at);
    TW_ASSIGN(EmitCalls::Call call, parser.call());
    TW_ASSIGN(const int64_t threads, parser.threads());
    if (threads > 1 && emit.calls.size() + 1 < lines.size())
      return make_error(DiagCode::parse, "emit '{0}': several threads do the last call", line);
    emit.threads = threads;
    emit.calls.push_back(std::move(call));
  }
  emit.lines = std::move(lines);
  return emit;
}

Error check_emit(const EmitCalls& emit, const std::vector<std::string>& parameters) {
  const auto wrong = [&](const std::string& message) {
    return make_error({DiagCode::parse, "emit '" + emit.text() + "': " + message, emit.at, {}});
  };
  std::set<std::string> values, unused(parameters.begin(), parameters.end());
  for (const EmitCalls::Call& call : emit.calls) {
    for (const EmitCalls::Operand& operand : call.operands) {
      if (operand.name.empty()) continue;
      const bool parameter = std::ranges::count(parameters, operand.name) > 0;
      if (!parameter && !values.contains(operand.name))
        return wrong("'" + operand.name + "' is no parameter of the semantics and no value of an " +
                     "earlier line");
      if (!parameter && operand.kind == EmitCalls::OperandKind::address)
        return wrong("'&" + operand.name + "' is a value, which has no address");
      unused.erase(operand.name);
    }
    if (call.value.empty()) continue;
    if (std::ranges::count(parameters, call.value) || !values.insert(call.value).second)
      return wrong("'" + call.value + "' has a meaning already");
    unused.insert(call.value);
  }
  if (!unused.empty()) return wrong("nothing takes '" + *unused.begin() + "'");
  return Error::success();
}

}  // namespace tw
