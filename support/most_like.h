// Names for somebody who misspelled one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tw {

// Names with the fewest letters to change; among equal ones, the longest beginning in common wins.
std::vector<std::string> most_like(std::string_view name, std::vector<std::string> all,
                                   size_t count = 4);
// "did you mean 'batch' or 'bath'?"; "" where no name is near.
std::string did_you_mean(std::string_view name, std::vector<std::string> all);

}  // namespace tw
