// compile --with-runner: a program beside the library. It runs, times and verifies the library on a
// machine with nothing but a kernel.
#pragma once
#include <string>

#include "cli/flags.h"
#include "driver/compile/compile.h"

namespace tw {

struct RunnerFile {
  bool wanted = false;

  void define(Flags& flags);
  // "": none is wanted
  std::string path(const std::string& library) const;
  std::string line(const std::string& library) const;  // line of the summary that names it
  // Errors: no library is written, or not one that the program could find or load.
  Error check(const CompileOptions& options, const Target& target) const;
};

}  // namespace tw
