// The steps of a schedule as flat lists, for models that learn from them.
#pragma once
#include "ir/schedule/schedule.h"

namespace tw {

// The items behind the keyword of a step's line, in order: numbers (1 for a set flag) and names.
// Names in the expressions of new indices are included.
using StepArgument = std::variant<int64_t, std::string>;
std::vector<StepArgument> arguments(const Step& step);
const char* keyword(const Step& step);

}  // namespace tw
