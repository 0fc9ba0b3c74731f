// Runs a compiled library on its machine: in this process, or by its runner in an emulator or on a
// board.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile/manifest.h"
#include "driver/run/tensors.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {

// True if this machine's processor has every feature that code for the target may use
bool runs_here(const Target& target);

struct LibraryPlace {
  // A command to which a program for the library's machine is appended: "qemu-arm -cpu max", or a
  // script that copies the program to a board. "": this machine if it can, else QEMU's emulator.
  std::string command;
  int threads = 0;  // 0: as many as the process may use
};

class LibraryRuns {
 public:
  // Errors: open() would refuse a library for the target.
  static Error check(const Target& target, const LibraryPlace& place);
  // manifest: the library's. Errors: a library that neither this machine nor an emulator on PATH
  // runs, or a device that is elsewhere.
  static Expected<LibraryRuns> open(const std::string& library, const Manifest& manifest,
                                    const LibraryPlace& place, Integrity integrity);
  LibraryRuns(LibraryRuns&&) noexcept;
  LibraryRuns& operator=(LibraryRuns&&) noexcept;
  ~LibraryRuns();

  const std::vector<TensorSpec>& inputs() const;    // in the library's order
  const std::vector<std::string>& outputs() const;  // names
  std::string machine() const;                      // "this machine", "qemu-arm -cpu max"
  Expected<std::vector<Tensor>> run(const Inputs& inputs) const;

  class Runs;

 private:
  explicit LibraryRuns(std::unique_ptr<Runs> runs);
  std::unique_ptr<Runs> runs_;
};

}  // namespace tw
