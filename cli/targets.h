// Where target descriptions are looked for.
#pragma once
#include <string>
#include <vector>

namespace tw {
// The directories in TILEWRIGHT_CONFIGS (separated by ':'), then share/tilewright/configs of the prefix that the program
// is installed in, then configs/ of the source tree it was built from.
std::vector<std::string> config_dirs();
}  // namespace tw
