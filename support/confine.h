// Work on what a stranger made, in a process that can do little: limits on memory, time and files,
// no way to other files, programs or the network. Of Linux with Landlock (5.13).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

struct Confinement {
  uint64_t memory_bytes = 0;  // of address space
  uint64_t file_bytes = 0;    // of each file that is written
  double seconds = 0;
  // Folders with all in them, or files; what is not there is left out. What is written may be read.
  std::vector<std::string> reads, writes;
};

// Forks, from a process with one thread. In the child: nothing, and from here on it is confined.
// In the parent, when the child is done: its exit code. Errors, in the parent: the system cannot
// confine (unsupported), a limit was met (limit), a signal ended the child (invalid_model).
Expected<std::optional<int>> confine(const Confinement& confinement);

}  // namespace tw
