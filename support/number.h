// Numbers in the user's text.
#pragma once
#include <optional>
#include <string_view>

namespace tw {

// The whole text as a decimal number, "-0.5" or "1e-3"; nullopt if it is not one or not finite.
std::optional<double> number_from_text(std::string_view text);

}  // namespace tw
