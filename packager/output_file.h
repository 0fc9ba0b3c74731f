// A file that appears whole or not at all. It is written without a name, and commit() gives it one.
// A file system without unnamed files gets a temporary name in the same directory, and a signal
// that ends the process removes it (support/end_signals.h).
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
  // Makes a file of `size` bytes and reserves the disk space, so that a full disk is an error here
  // and not later. `named` takes the temporary name even where unnamed files exist, for tests.
  static Expected<OutputFile> create(std::string path, uint64_t size, bool executable = false,
                                     bool named = false);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // without commit() it leaves nothing behind

  Error write(uint64_t offset, std::string_view bytes);
  // `body` writes [offset, offset + size) in place; bytes that nobody wrote are zeros. Memory in
  // use: `size` bytes of page cache at most. Safe to call from several threads for ranges that do
  // not overlap.
  Error fill(uint64_t offset, uint64_t size, llvm::function_ref<Error(std::span<std::byte>)> body);
  // The bytes written so far, mapped where that is possible; valid until commit()
  Expected<std::unique_ptr<llvm::MemoryBuffer>> contents() const;
  Error commit();

  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, int file, bool named);
  std::string path_, temporary_;
  std::unique_ptr<RemovedOnEndSignal> removed_;  // set while the file has the temporary name
  int file_ = -1;
};

Error write_file(const std::string& path, std::string_view bytes, bool executable = false);

}  // namespace tw
