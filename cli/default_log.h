// The path of the user's tuning log.
#pragma once
#include <string>

namespace tw {

// XDG_DATA_HOME or ~/.local/share, then tilewright/tilewright.db; "": no home.
std::string default_log();

}  // namespace tw
