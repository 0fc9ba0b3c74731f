// What tells one failure of a model from another, while it is cut.
#pragma once
#include <string>

namespace tw {

// Of the output of compile --json or verify --json: the first error's code and message without its
// numbers, or in which way outputs are off. "": it is neither.
std::string failure_of(const std::string& json);

}  // namespace tw
