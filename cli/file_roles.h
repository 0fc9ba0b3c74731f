// Which files a command reads and which it writes, checked before any work: what is written is no
// file that is read, and no two are one. Files are the same by device and inode, or, where they do
// not exist yet, by their folder's and their name: spelling and links do not matter.
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
  // `what` is for messages: "the model". An empty path is no file; one that is read and does not
  // exist is left to who reads it.
  void reads(std::string what, std::string path);
  // With the files beside it that hold its tensors
  void reads_model(const std::string& path);
  void reads_target(const std::string& name_or_path);
  void writes(std::string what, std::string path);
  // Errors: somebody has written into the files of a model since they were named
  Error models_are_unchanged() const;
  Error check() const;
  // A rule of make: what is written comes from what is read. For Make, Ninja and CMake. Errors: a
  // name that these would take for another one, or for more than a name
  Expected<std::string> dependencies() const;
  // What is read, by role and hash. Errors: a file that cannot be read
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

// Says now what writing would say after minutes of work; devices such as /dev/full would be
// replaced by the file.
Error check_writable(const std::string& path);

}  // namespace tw
