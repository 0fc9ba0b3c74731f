// Staged files are made in folders beside their places, and take these together once all is well.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace tw {

class StagedFiles {
 public:
  // The path to write to in place of this one; the file's name is the same. "" for "".
  Expected<std::string> stage(const std::string& path);
  // Moves every file that was made to its place. After an error none of them is there.
  Error publish();

 private:
  struct File {
    std::string made, path;
  };
  std::map<std::string, TemporaryFolder> folders_;  // by parent folder
  std::vector<File> files_;
};

}  // namespace tw
