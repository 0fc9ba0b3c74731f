#include "driver/run/dims.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <charconv>
#include <optional>

namespace tw {

static std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? std::optional(value)
                                                                             : std::nullopt;
}

Error parse_dims(const std::vector<std::string>& texts, std::map<std::string, int64_t>& dims,
                 SymbolLimitsOf& limits, const char* flag) {
  for (const std::string& text : texts) {
    // Names may contain '=' and "..".
    const size_t equals = text.rfind('='),
                 dots = equals == std::string::npos ? equals : text.find("..", equals);
    const std::string name = text.substr(0, equals);
    const std::string_view behind = equals == std::string::npos
                                        ? ""
                                        : std::string_view(text).substr(equals + 1);
    if (dims.count(name) || limits.count(name))
      return make_error(DiagCode::invalid_argument, "{0} gives '{1}' twice", flag, name);
    if (dots != std::string::npos && !name.empty()) {
      const std::string_view last = behind.substr(dots - equals + 1);
      const size_t slash = std::min(last.find('/'), last.size());
      const auto least = whole_number(behind.substr(0, dots - equals - 1)),
                 most = whole_number(last.substr(0, slash)),
                 step = slash < last.size() ? whole_number(last.substr(slash + 1)) : 1;
      if (!least || !most || !step || *least < 0 || *most < *least || *step < 1 ||
          *most / *step * *step < *least)
        return make_error(
            DiagCode::invalid_argument,
            "{0} '{1}' is not NAME=A..B with 0 <= A <= B, for example {0} seq=1..512, "
            "or NAME=A..B/S for multiples of S in it, {0} H=32..960/32",
            flag, text);
      limits[name] = {*least, *most, *step};
      continue;
    }
    const auto value = whole_number(behind);
    // --dim may be 0: a list may be empty. Dimensions are checked with the model.
    const int64_t least = std::string_view(flag) == "--dim" ? 0 : 1;
    if (name.empty() || !value || *value < least)
      return make_error(DiagCode::invalid_argument,
                        "{0} '{1}' is not NAME=N with N >= 1, for example {0} batch=1", flag, text);
    dims[name] = *value;
  }
  return Error::success();
}

Expected<std::map<std::string, int64_t>> parse_dims(const std::vector<std::string>& texts,
                                                    const char* flag) {
  std::map<std::string, int64_t> dims;
  SymbolLimitsOf limits;
  TW_TRY(parse_dims(texts, dims, limits, flag));
  if (!limits.empty())
    return make_error(DiagCode::invalid_argument, "{0} '{1}': a range is for compile's --dim alone",
                      flag, limits.begin()->first);
  return dims;
}

Expected<std::vector<std::map<std::string, int64_t>>> parse_specialize(
    const std::vector<std::string>& texts) {
  std::vector<std::map<std::string, int64_t>> all;
  for (const std::string& text : texts) {
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(text).split(parts, ',');
    TW_ASSIGN(all.emplace_back(), parse_dims({parts.begin(), parts.end()}, "--specialize"));
  }
  return all;
}

}  // namespace tw
