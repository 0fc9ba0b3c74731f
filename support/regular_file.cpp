#include "support/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tw {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Expected<std::unique_ptr<llvm::MemoryBuffer>> regular_file(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return make_error(DiagCode::io, "cannot read '{0}': {1}", path, why);
  };
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) return refused(std::strerror(errno));
  struct stat info{};
  if (::fstat(file.number, &info) != 0) return refused(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return refused("it is not a regular file");
  auto bytes = llvm::MemoryBuffer::getOpenFile(file.number, path,
                                               static_cast<uint64_t>(info.st_size), false);
  if (!bytes) return refused(bytes.getError().message());
  return std::move(*bytes);
}

}  // namespace tw
