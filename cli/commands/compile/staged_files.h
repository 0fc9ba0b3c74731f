// Files that are made in folders beside their places, and take these together, once all is well.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "driver/run/temporary_folder.h"

namespace tw {

class StagedFiles {
 public:
  // The path to write to in place of this one; the file's name is the same. "" for "".
  Expected<std::string> stage(const std::string& path);
  // Every file that was made takes its place. Errors: none does
  Error publish();

 private:
  struct File {
    std::string made, path;
  };
  std::map<std::string, TemporaryFolder> folders_;  // by the folder that they are in
  std::vector<File> files_;
};

}  // namespace tw
