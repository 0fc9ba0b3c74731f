// A file that exists in memory only, under a name that other libraries can open
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "support/diag.h"

namespace tw {

class MemoryFile {
 public:
  static Expected<MemoryFile> create(std::string_view bytes);
  MemoryFile(MemoryFile&& other) noexcept : handle_(other.release()) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  std::string path() const { return "/proc/self/fd/" + std::to_string(handle_); }
  int release() { return std::exchange(handle_, -1); }  // the caller closes it

 private:
  explicit MemoryFile(int handle) : handle_(handle) {}
  int handle_;
};

}  // namespace tw
