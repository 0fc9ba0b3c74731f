// Builds artifacts from the fake model's bitcode the way the compiler does: runtime linked in, LLVM, lld, graft.
#pragma once
#include <string>
#include <vector>

#include "packager/link.h"

// The object of fake_model.c's bitcode TW_FAKE_DIR/FILE.bc, with the runtime.
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
