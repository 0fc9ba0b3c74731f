// Builds artifacts from the fake model's object as the compiler does: runtime, lld, graft.
#pragma once
#include <string>
#include <vector>

#include "packager/link.h"

// Returns the object TW_FAKE_DIR/FILE.o, compiled from fake_model.c.
std::string compile_fake(const std::string& file);

tw::LinkRequest fake_request(const std::string& file, const std::string& name = "fake");

// Links and writes an artifact with these weights.
void write_fake(const std::string& path, const std::string& file, const std::string& name = "fake",
                const std::vector<float>& weights = {100, 200, 300, 400});

class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  std::string operator/(const std::string& file) const { return path_ + "/" + file; }
  const std::string& path() const { return path_; }
  int files() const;  // number of entries

 private:
  std::string path_;
};

struct CommandResult {
  int status;
  std::string output;
};
CommandResult run_command(const std::string& command);
