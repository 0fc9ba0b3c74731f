// Symbols of dims: what their names say, and what is known of their values.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tw {

// A symbol has a mark behind its name, in text forms too: whether it may be 0, or is at least 1. In
// texts that people write it may lack, and the symbol is at least 1. No loop has a mark, so none
// is taken for a symbol. Names carry it and no table, so that an expression is simplified alike
// wherever it stands. Only the functions below know the marks.
inline constexpr std::string_view kMayBeZero = ".0", kAtLeastOne = ".1";
inline std::string symbol_name(const std::string& stem, int64_t least) {
  return stem + std::string(least > 0 ? kAtLeastOne : kMayBeZero);
}
inline int64_t least_of(std::string_view symbol) { return symbol.ends_with(kMayBeZero) ? 0 : 1; }
// As the C interface and people call it: without the mark.
inline std::string interface_name(std::string_view symbol) {
  if (symbol.ends_with(kMayBeZero) || symbol.ends_with(kAtLeastOne))
    symbol.remove_suffix(kMayBeZero.size());
  return std::string(symbol);
}

// What the user says of a symbol of the inputs: runs with other values end with TW_E_SHAPE.
struct SymbolLimits {
  int64_t least = 1, most = INT64_MAX;
  int64_t step = 1;  // multiples of it alone
};
using SymbolLimitsOf = std::map<std::string, SymbolLimits, std::less<>>;
inline SymbolLimits limits_of(const SymbolLimitsOf& given, std::string_view symbol) {
  const auto found = given.find(symbol);
  return found == given.end() ? SymbolLimits{least_of(symbol), INT64_MAX, 1} : found->second;
}

}  // namespace tw
