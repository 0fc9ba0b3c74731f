// A file that appears whole or not at all: written without a name, which commit() gives it; where
// the file system has no such files, under a temporary name in the same directory, which a signal
// that ends the process removes (support/end_signals.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Support/MemoryBuffer.h>

#include "support/diag.h"
#include "support/end_signals.h"

namespace tw {

class OutputFile {
 public:
  // `size` bytes with the disk space reserved, so that a full disk is an error here and now.
  // named: as if there were no other way
  static Expected<OutputFile> create(std::string path, uint64_t size, bool executable = false,
                                     bool named = false);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // without commit(): leaves nothing behind

  Error write(uint64_t offset, std::string_view bytes);
  // Lets `body` write [offset, offset + size) in place, zeroed before. Memory in use: `size` bytes
  // of page cache at most. Safe to call from several threads for ranges that do not overlap.
  Error fill(uint64_t offset, uint64_t size, llvm::function_ref<Error(std::span<std::byte>)> body);
  // What has been written, mapped where that can be: good until commit().
  Expected<std::unique_ptr<llvm::MemoryBuffer>> contents() const;
  Error commit();

  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, int file, bool named);
  std::string path_, temporary_;
  std::unique_ptr<RemovedOnEndSignal> removed_;  // while the file has the temporary name
  int file_ = -1;
};

// Writes a whole file whose bytes are at hand.
Error write_file(const std::string& path, std::string_view bytes, bool executable = false);

}  // namespace tw
