#include "cli/flags.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdlib>
#include <limits>

namespace tw {

void Flags::argument(const std::string& name, std::string& value, const std::string& help, bool required) {
  app_.add_option(name, value, help)->required(required)->type_name("");
}

void Flags::arguments(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  app_.add_option(name, values, help)->type_name("");
}

void Flags::text(const std::string& names, std::string& value, const std::string& kind, const std::string& help) {
  app_.add_option(names, value, help)->type_name(kind);
}

void Flags::repeated(const std::string& names, std::vector<std::string>& values, const std::string& kind, const std::string& help) {
  app_.add_option(names, values, help)->type_name(kind)->allow_extra_args(false);
}

void Flags::comma_list(const std::string& names, std::vector<std::string>& values, const std::string& kind, const std::string& help) {
  app_.add_option(names, values, help)->type_name(kind)->allow_extra_args(false)->delimiter(',');
}

void Flags::integer(const std::string& names, int& value, const std::string& help, int at_least) {
  const int most = std::numeric_limits<int>::max();
  CLI::Validator range = CLI::Range(at_least, most);
  app_.add_option(names, value, help)->type_name("N")->check(range.description(""));
}

void Flags::optional_integer(const std::string& names, std::optional<int>& value, const std::string& help, int at_least) {
  CLI::Validator range = CLI::Range(at_least, std::numeric_limits<int>::max());
  app_.add_option_function<int>(names, [&value](const int& v) { value = v; }, help)->type_name("N")->check(range.description(""));
}

void Flags::number(const std::string& names, double& value, const std::string& kind, const std::string& help) {
  app_.add_option(names, value, help)->type_name(kind)->check([](const std::string& text) {
    return std::strtod(text.c_str(), nullptr) >= 0 ? "" : std::string("must not be negative: ") + text;
  });
}

void Flags::seed(const std::string& names, std::optional<uint64_t>& value, const std::string& help) {
  app_.add_option_function<uint64_t>(names, [&value](const uint64_t& v) { value = v; }, help)->type_name("SEED");
}

void Flags::flag(const std::string& names, bool& value, const std::string& help) { app_.add_flag(names, value, help); }

static std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

Error parse_dims(const std::vector<std::string>& texts, std::map<std::string, int64_t>& dims, SymbolLimitsOf& limits, const char* flag) {
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('='), dots = equals == std::string::npos ? equals : text.find("..", equals);   // names may hold both
    const std::string name = text.substr(0, equals);
    const std::string_view behind = equals == std::string::npos ? "" : std::string_view(text).substr(equals + 1);
    if (dims.count(name) || limits.count(name)) return make_error(DiagCode::invalid_argument, "{0} gives '{1}' twice", flag, name);
    if (dots != std::string::npos && !name.empty()) {
      const auto least = whole_number(behind.substr(0, dots - equals - 1)), most = whole_number(behind.substr(dots - equals + 1));
      if (!least || !most || *least < 0 || *most < *least)
        return make_error(DiagCode::invalid_argument, "{0} '{1}' is not NAME=A..B with 0 <= A <= B, for example {0} seq=1..512", flag, text);
      limits[name] = {*least, *most};
      continue;
    }
    const auto value = whole_number(behind);
    const int64_t least = std::string_view(flag) == "--dim" ? 0 : 1;   // a list may hold nothing; dimensions are checked with the model
    if (name.empty() || !value || *value < least)
      return make_error(DiagCode::invalid_argument, "{0} '{1}' is not NAME=N with N >= 1, for example {0} batch=1", flag, text);
    dims[name] = *value;
  }
  return Error::success();
}

void define_no_check(Flags& flags, bool& value) {
  flags.flag("--no-check", value, "Take a library as it is, without comparing its bytes with the hashes in it");
}

Expected<std::map<std::string, int64_t>> parse_dims(const std::vector<std::string>& texts, const char* flag) {
  std::map<std::string, int64_t> dims;
  SymbolLimitsOf limits;
  TW_TRY(parse_dims(texts, dims, limits, flag));
  if (!limits.empty()) return make_error(DiagCode::invalid_argument, "{0} '{1}': a range is for compile's --dim alone", flag, limits.begin()->first);
  return dims;
}

Expected<std::vector<std::map<std::string, int64_t>>> parse_specialize(const std::vector<std::string>& texts) {
  std::vector<std::map<std::string, int64_t>> all;
  for (const std::string& text : texts) {
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(text).split(parts, ',');
    TW_ASSIGN(all.emplace_back(), parse_dims({parts.begin(), parts.end()}, "--specialize"));
  }
  return all;
}

}  // namespace tw
