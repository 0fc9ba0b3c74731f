// A folder for files that another step reads; gone with its owner, or when a signal ends the
// process.
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
    std::string pattern =
        (std::filesystem::temp_directory_path(code) / "tilewright-XXXXXX").string();
    const EndSignalsWait until_registered;
    if (code || !::mkdtemp(pattern.data()))
      return make_error(DiagCode::io, "cannot create a temporary folder like '{0}'", pattern);
    return TemporaryFolder(pattern);
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
  explicit TemporaryFolder(std::string path)
      : path_(std::move(path)), removed_(std::make_unique<RemovedOnEndSignal>(path_)) {}
  std::string path_;
  std::unique_ptr<RemovedOnEndSignal> removed_;
};

}  // namespace tw
