#include "cli/targets.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "driver/tune/predictor_files.h"
#include "frontend/frontend.h"

namespace tw {

namespace {

std::vector<std::string> shared_dirs(const char* variable, const char* name) {
  namespace fs = std::filesystem;
  std::vector<std::string> dirs;
  if (const char* list = std::getenv(variable)) {
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) dirs.push_back(part);
  }
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  const fs::path folder = program.parent_path();
  if (!none)  // installed programs are in bin, those of a build tree are not
    for (const fs::path& base : {folder.parent_path(), folder})
      dirs.push_back((base / "share/tilewright" / name).string());
  std::erase_if(dirs, [](const std::string& dir) {
    std::error_code missing;
    return !fs::is_directory(dir, missing);
  });
  return dirs;
}

}  // namespace

std::vector<std::string> config_dirs() { return shared_dirs("TILEWRIGHT_CONFIGS", "configs"); }
std::vector<std::string> predictor_dirs() {
  return shared_dirs("TILEWRIGHT_PREDICTORS", "predictors");
}
std::vector<std::string> dataset_dirs() { return shared_dirs("TILEWRIGHT_DATASETS", "datasets"); }

Expected<std::shared_ptr<const PredictorSet>> predictors_for(const std::string& kind,
                                                             const std::string& target) {
  const std::string description = target_file(target, config_dirs());
  const std::string heads = description.empty() ? "" : heads_beside(description);
  std::error_code none;
  const bool own = kind == kBestPredictor && std::filesystem::exists(heads, none);
  return load_predictors(kind, predictor_dirs(), own ? heads : "");
}

void with_virtual_threads(Target& target, int threads) {
  for (Target& device : target.devices)
    if (threads > 0) device.virtual_threads = threads;
}

}  // namespace tw
