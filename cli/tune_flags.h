// Values of flags that tune and compile --tune share.
#pragma once
#include <optional>
#include <string>

#include "support/diag.h"

namespace tw {

// The path in --log, or the user's own log. Error: there is neither.
Expected<std::string> tuning_log(const std::string& flag);
inline constexpr const char* kNoTuning = "off";
// "one-shot" -> 0, "one-shot:16" -> 16: the number of measurements of each kernel. nullopt: another
// text, or a number that is too large.
std::optional<int> one_shot_from_text(const std::string& text);
double seconds_from_text(const std::string& text);  // "90", "90s", "10m", "1.5h"; 0: not a time

}  // namespace tw
