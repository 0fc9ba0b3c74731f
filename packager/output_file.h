// A file that appears whole or not at all: written under a temporary name in the same directory, renamed by commit().
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <llvm/ADT/STLFunctionalExtras.h>

#include "support/diag.h"

namespace tw {

class OutputFile {
 public:
  // Creates PATH.tmp-PID of `size` bytes with the disk space reserved, so that a full disk is an error here and now.
  static Expected<OutputFile> create(std::string path, uint64_t size, bool executable = false);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // without commit(): leaves nothing behind

  Error write(uint64_t offset, std::string_view bytes);
  // Lets `body` write [offset, offset + size) in place, zeroed before. Memory in use: `size` bytes of page cache at most.
  // Safe to call from several threads for ranges that do not overlap.
  Error fill(uint64_t offset, uint64_t size, llvm::function_ref<Error(std::span<std::byte>)> body);
  Error commit();

  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, std::string temporary, int file) : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}
  std::string path_, temporary_;
  int file_ = -1;
};

// Writes a whole small file.
Error write_file(const std::string& path, std::string_view bytes);

}  // namespace tw
