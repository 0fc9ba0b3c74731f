// compile --with-runner: a program beside the library that runs, times and verifies it where there
// is nothing but the kernel.
#pragma once
#include <string>

#include "cli/flags.h"
#include "driver/compile/compile.h"

namespace tw {

struct RunnerFile {
  bool wanted = false;

  void define(Flags& flags);
  // "" where none is wanted
  std::string path(const std::string& library) const;
  std::string line(const std::string& library) const;  // that names it, for the summary
  // Errors: no library is written, or not one that the program could find or load.
  Error check(const CompileOptions& options, const Target& target) const;
};

}  // namespace tw
