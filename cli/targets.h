// Where target descriptions are looked for.
#pragma once
#include <string>
#include <vector>

#include "ir/target.h"

namespace tw {
// The directories in TILEWRIGHT_CONFIGS (separated by ':'), then share/tilewright/configs of the
// prefix that the program is installed in, then configs/ of the source tree it was built from.
std::vector<std::string> config_dirs();
// The target with so many virtual threads on its devices; 0: as it says.
void with_virtual_threads(Target& target, int threads);
}  // namespace tw
