#include "cli/text/manifest_counts.h"

#include "ir/text.h"

namespace tw {

Expected<double> value_of(const std::string& text, const Symbols& symbols,
                          const SymbolNames& names) {
  if (text.empty()) return 0.0;
  TW_ASSIGN(const Expr e, parse_expr(text));
  bool known = e.type() == DType::i64;
  const auto value = [&](std::string_view name) -> std::optional<int64_t> {
    const auto found = symbols.find(symbol_name(names, name));
    if (found != symbols.end()) return found->second;
    // A size made from data is not told: it counts as 1.
    return least_of(name) == 0 ? std::optional<int64_t>(1) : std::nullopt;
  };
  visit(e, [&](const Expr& n) {
    const std::string* name = var_name(n);
    known &= !name || value(*name).has_value();
  });
  if (!known)
    return make_error(DiagCode::parse,
                      "the manifest's count '{0}' is no expression of the model's symbols", text);
  return static_cast<double>(eval_int(e, [&](std::string_view name) { return *value(name); }));
}

}  // namespace tw
