// What compile says of a library or an object at its end.
#pragma once
#include <string>

#include "driver/compile/compile.h"

namespace tw {

std::string summary_text(const CompileReport& r, double seconds, bool tuned, int columns);

}  // namespace tw
