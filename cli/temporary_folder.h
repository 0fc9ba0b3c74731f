// A folder for files that another step reads; gone with its owner.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "support/diag.h"

namespace tw {

class TemporaryFolder {
 public:
  static Expected<TemporaryFolder> create() {
    std::error_code code;
    std::string pattern = (std::filesystem::temp_directory_path(code) / "tilewright-XXXXXX").string();
    if (code || !::mkdtemp(pattern.data())) return make_error(DiagCode::io, "cannot create a temporary folder like '{0}'", pattern);
    return TemporaryFolder(pattern);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tw
