// run_cli on words instead of argv.
#pragma once
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"
#include "tests/test_folder.h"

namespace tw {

struct CliResult {
  int code = -1;
  std::string out, err;
};

inline CliResult cli(std::vector<std::string> words) {
  std::vector<const char*> argv = {"tilewright"};
  for (const std::string& w : words) argv.push_back(w.c_str());
  std::ostringstream out, err;
  CliResult r;
  r.code = run_cli(static_cast<int>(argv.size()), argv.data(), out, err);
  r.out = out.str();
  r.err = err.str();
  return r;
}

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace tw
