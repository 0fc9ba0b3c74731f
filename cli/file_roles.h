// Checks the files of a command before any work: no file that is written may be one that is read,
// and no two may be one. Files are the same by device and inode or, where they do not exist yet, by
// their folder and name: spelling and links do not matter.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/diag.h"

namespace tw {

class FileRoles {
 public:
  // `what` is for messages: "the model". An empty path is no file. A missing file is left to its
  // reader.
  void reads(std::string what, std::string path);
  // Adds the model and the files beside it that hold its tensors.
  void reads_model(const std::string& path);
  void reads_target(const std::string& name_or_path);
  void writes(std::string what, std::string path);
  // Errors: somebody has written into a model's files since reads_model().
  Error models_are_unchanged() const;
  Error check() const;
  // A rule for Make, Ninja and CMake: written files depend on those that are read. Errors: a name
  // that these tools would take for another one, or for more than a name.
  Expected<std::string> dependencies() const;
  // A line for each file that is read: role and hash. Errors: a file that cannot be read.
  Expected<std::string> hashes() const;

 private:
  struct File {
    std::string what, path;
  };
  struct Version {
    std::array<uint64_t, 2> file;
    std::array<int64_t, 5> state;
  };
  static std::optional<Version> version_of(const std::string& path);

  std::vector<File> read_, written_;
  std::vector<std::pair<std::string, Version>> models_;
};

// Finds the errors of writing before minutes of work. Refuses devices such as /dev/full, since the
// file would replace them.
Error check_writable(const std::string& path);

}  // namespace tw
