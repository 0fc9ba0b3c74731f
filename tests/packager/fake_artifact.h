// Builds artifacts from the fake model's object the way the compiler does: runtime, lld, graft.
#pragma once
#include <string>
#include <vector>

#include "packager/link.h"

// The object TW_FAKE_DIR/FILE.o of fake_model.c.
std::string compile_fake(const std::string& file);

tw::LinkRequest fake_request(const std::string& file, const std::string& name = "fake");

// Links and writes; the weights are the floats given.
void write_fake(const std::string& path, const std::string& file, const std::string& name = "fake",
                const std::vector<float>& weights = {100, 200, 300, 400});

// A directory of the test's own under /tmp, removed with all in it.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  std::string operator/(const std::string& file) const { return path_ + "/" + file; }
  const std::string& path() const { return path_; }
  int files() const;  // how many entries

 private:
  std::string path_;
};

// Exit status and output of a shell command.
struct CommandResult {
  int status;
  std::string output;
};
CommandResult run_command(const std::string& command);
