// What the flags of tune and of compile --tune mean.
#pragma once
#include <string>

#include "support/diag.h"

namespace tw {

// Of --log, or the user's own. Error: neither is there.
Expected<std::string> tuning_log(const std::string& flag);
double seconds_from_text(const std::string& text);  // "90", "90s", "10m", "1.5h"; 0: not a time

}  // namespace tw
