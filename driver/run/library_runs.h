// Runs of a compiled library where its machine is: in this process, or by its runner in an
// emulator.
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

// True where this machine's processor has all that code for the target may use.
bool runs_here(const Target& target);

struct LibraryPlace {
  // Starts a program of the library's machine that is appended to it: "qemu-arm -cpu max", or a
  // script that copies it to a board. "": this machine where it can, else QEMU's emulator.
  std::string command;
  int threads = 0;  // 0: as many as the process may use
};

class LibraryRuns {
 public:
  // Errors: a library for the target that would be refused by open().
  static Error check(const Target& target, const LibraryPlace& place);
  // manifest: the library's. Errors: a library that neither this machine nor an emulator on PATH
  // runs; devices elsewhere.
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
