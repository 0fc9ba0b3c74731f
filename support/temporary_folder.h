// A folder for files that another step reads. It is removed with its owner, or when a signal ends
// the process.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "support/diag.h"
#include "support/end_signals.h"

namespace tw {

class TemporaryFolder {
 public:
  static Expected<TemporaryFolder> create() {
    std::error_code code;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(code);
    return make((code ? "/tmp" : folder) / "tilewright-XXXXXX");
  }
  // A folder from which a file can be renamed to the path
  static Expected<TemporaryFolder> beside(const std::filesystem::path& path) {
    return make(path.parent_path() / ("." + path.filename().string() + "-XXXXXX"));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::move(other.path_)), removed_(std::move(other.removed_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }

 private:
  static Expected<TemporaryFolder> make(std::string pattern) {
    const EndSignalsWait until_registered;
    if (!::mkdtemp(pattern.data()))
      return make_error(DiagCode::io, "cannot create a temporary folder like '{0}'", pattern);
    return TemporaryFolder(pattern);
  }
  explicit TemporaryFolder(std::string path)
      : path_(std::move(path)), removed_(std::make_unique<RemovedOnEndSignal>(path_)) {}
  std::string path_;
  std::unique_ptr<RemovedOnEndSignal> removed_;
};

}  // namespace tw
