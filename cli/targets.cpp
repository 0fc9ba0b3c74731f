#include "cli/targets.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tw {

std::vector<std::string> config_dirs() {
  namespace fs = std::filesystem;
  std::vector<std::string> dirs;
  if (const char* list = std::getenv("TILEWRIGHT_CONFIGS")) {
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) dirs.push_back(part);
  }
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  const fs::path folder = program.parent_path();
  if (!none)  // of an installed program, which is in bin, and of one of the build tree
    for (const fs::path& base : {folder.parent_path(), folder})
      dirs.push_back((base / "share/tilewright/configs").string());
  std::erase_if(dirs, [](const std::string& dir) {
    std::error_code missing;
    return !fs::is_directory(dir, missing);
  });
  return dirs;
}

void with_virtual_threads(Target& target, int threads) {
  for (Target& device : target.devices)
    if (threads > 0) device.virtual_threads = threads;
}

}  // namespace tw
