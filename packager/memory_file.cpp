#include "packager/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tw {

Expected<MemoryFile> MemoryFile::create(std::string_view bytes) {
  MemoryFile file(::memfd_create("tilewright", MFD_CLOEXEC));
  if (file.handle_ < 0)
    return make_error(DiagCode::io, "cannot create a file in memory: {0}", std::strerror(errno));
  while (!bytes.empty()) {
    const ssize_t done = ::write(file.handle_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0)
      return make_error(DiagCode::io, "cannot write a file in memory: {0}", std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return file;
}

MemoryFile::~MemoryFile() {
  if (handle_ >= 0) ::close(handle_);
}

}  // namespace tw
