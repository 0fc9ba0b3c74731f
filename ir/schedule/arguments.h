// The steps of a schedule as flat lists, for those who learn from them.
#pragma once
#include "ir/schedule/schedule.h"

namespace tw {

// What stands in a step's line behind its keyword, in order: numbers (a flag that is set: 1) and
// names, those in the expressions of new indices too.
using StepArgument = std::variant<int64_t, std::string>;
std::vector<StepArgument> arguments(const Step& step);
const char* keyword(const Step& step);

}  // namespace tw
