#include "cli/default_log.h"

#include <cstdlib>
#include <filesystem>

namespace tw {

std::string default_log() {
  namespace fs = std::filesystem;
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data == '/')
    return (fs::path(data) / "tilewright/tilewright.db").string();
  if (const char* home = std::getenv("HOME"); home && *home)
    return (fs::path(home) / ".local/share/tilewright/tilewright.db").string();
  return "";
}

}  // namespace tw
