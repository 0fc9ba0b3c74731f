// Confinement of work on data from a stranger. One process gets limits on memory, time, threads and
// files, and no way to other files, processes, programs or the network. It takes Linux 5.13 with
// Landlock.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

struct Confinement {
  uint64_t memory_bytes = 0;  // limit of the address space
  uint64_t file_bytes = 0;    // limit of each written file
  double seconds = 0;
  // Files, or folders with all that they contain; missing paths are skipped. Paths in `writes` may
  // be read too.
  std::vector<std::string> reads, writes;
  std::vector<int> descriptors = {};  // stay open, besides the standard streams
};

// Forks; the process must have one thread. The child gets nullopt and is confined from here on. The
// parent waits for the child and gets its exit code. Errors, in the parent: the system cannot
// confine (unsupported), the child met a limit (limit), a signal ended the child (invalid_model).
Expected<std::optional<int>> confine(const Confinement& confinement);

// Confines this process for ever; it must have one thread. It dies with the thread that started it,
// and nobody watches its time and its threads. Errors: the system cannot confine.
Error confine_self(const Confinement& confinement);

}  // namespace tw
