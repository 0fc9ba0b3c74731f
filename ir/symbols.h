// Symbols of dims: the marks in their names, and the limits of their values.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tw {

// A symbol's name ends with a mark, in text forms too: it may be 0, or it is at least 1. Texts that
// people write may omit the mark; the symbol is then at least 1. Loop variables have no mark, so
// none is taken for a symbol. The name carries the mark, and no table does, so that an expression
// simplifies alike wherever it stands. Only the functions below know the marks.
inline constexpr std::string_view kMayBeZero = ".0", kAtLeastOne = ".1";
inline std::string symbol_name(const std::string& stem, int64_t least) {
  return stem + std::string(least > 0 ? kAtLeastOne : kMayBeZero);
}
inline int64_t least_of(std::string_view symbol) { return symbol.ends_with(kMayBeZero) ? 0 : 1; }
// The name without its mark, as the C interface and people use it
inline std::string interface_name(std::string_view symbol) {
  if (symbol.ends_with(kMayBeZero) || symbol.ends_with(kAtLeastOne))
    symbol.remove_suffix(kMayBeZero.size());
  return std::string(symbol);
}

// The user's limits of a symbol of the inputs. Runs with other values end with TW_E_SHAPE.
struct SymbolLimits {
  int64_t least = 1, most = INT64_MAX;
  int64_t step = 1;  // only multiples of it are allowed
};
using SymbolLimitsOf = std::map<std::string, SymbolLimits, std::less<>>;
inline SymbolLimits limits_of(const SymbolLimitsOf& given, std::string_view symbol) {
  const auto found = given.find(symbol);
  return found == given.end() ? SymbolLimits{least_of(symbol), INT64_MAX, 1} : found->second;
}

}  // namespace tw
