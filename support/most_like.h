// Suggestions for a misspelled name.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tw {

// The names with the fewest letters to change. Among equal ones, those with the longest common
// beginning come first.
std::vector<std::string> most_like(std::string_view name, std::vector<std::string> all,
                                   size_t count = 4);
// "did you mean 'batch' or 'bath'?"; "" if no name is near.
std::string did_you_mean(std::string_view name, std::vector<std::string> all);

}  // namespace tw
