// The summary of a library or an object at the end of compile.
#pragma once
#include <string>

#include "driver/compile/compile.h"

namespace tw {

// tuned_since: when the compile's own search began; 0: it made none.
std::string summary_text(const CompileReport& r, double seconds, int64_t tuned_since, int columns,
                         bool for_size);

}  // namespace tw
