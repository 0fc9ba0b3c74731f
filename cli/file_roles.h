// Which files a command reads and which it writes, checked before any work: what is written is no
// file that is read, and no two are one. Files are the same by device and inode, or, where they do
// not exist yet, by their folder's and their name: spelling and links do not matter.
#pragma once
#include <string>
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
  Error check() const;
  // A rule of make: what is written comes from what is read. For Make, Ninja and CMake
  std::string dependencies() const;
  // What is read, by role and hash. Errors: a file that cannot be read
  Expected<std::string> hashes() const;

 private:
  struct File {
    std::string what, path;
  };
  std::vector<File> read_, written_;
};

// Says now what writing would say after minutes of work; devices such as /dev/full would be
// replaced by the file.
Error check_writable(const std::string& path);

}  // namespace tw
