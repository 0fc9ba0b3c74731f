// What the flags of tune and of compile --tune mean.
#pragma once
#include <optional>
#include <string>

#include "support/diag.h"

namespace tw {

// Of --log, or the user's own. Error: neither is there.
Expected<std::string> tuning_log(const std::string& flag);
inline constexpr const char* kNoTuning = "off";
// "one-shot" -> 0, "one-shot:16" -> 16: so many measurements of each kernel. Nothing: another text,
// or no number that can be meant.
std::optional<int> one_shot_from_text(const std::string& text);
double seconds_from_text(const std::string& text);  // "90", "90s", "10m", "1.5h"; 0: not a time

}  // namespace tw
