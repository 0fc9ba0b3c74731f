// Work on what a stranger made, in one process that can do little: limits on memory, time, threads
// and files, no way to other files, processes, programs or the network. Of Linux with Landlock
// (5.13).
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
  std::vector<int> descriptors = {};  // that stay open, besides the standard streams
};

// Forks, from a process with one thread. In the child: nothing, and from here on it is confined.
// In the parent, when the child is done: its exit code. Errors, in the parent: the system cannot
// confine (unsupported), a limit was met (limit), a signal ended the child (invalid_model).
Expected<std::optional<int>> confine(const Confinement& confinement);

// This process itself from here on, for ever, before it has a second thread: it ends with the
// thread that started it, and nobody watches its seconds and threads. Errors: the system cannot
// confine.
Error confine_self(const Confinement& confinement);

}  // namespace tw
