// A regular file mapped read-only; the mapping lives as long as anybody holds the shared pointer.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/blob.h"
#include "support/diag.h"

namespace tw {

class MappedFile {
 public:
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  // Errors (code io) name `path`: missing, unreadable, not a regular file.
  static Expected<std::shared_ptr<const MappedFile>> open(const std::string& path);
  // Takes over an open descriptor; `path` is for messages.
  static Expected<std::shared_ptr<const MappedFile>> adopt(int descriptor, const std::string& path);

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// A range of a mapping. offset and size must lie inside.
Blob blob_of(std::shared_ptr<const MappedFile> file, uint64_t offset, uint64_t size);

}  // namespace tw
