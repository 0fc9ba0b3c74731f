#include "frontend/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tw {

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Expected<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return make_error(DiagCode::io, "cannot open '{0}': {1}", path, std::strerror(errno));
  return adopt(descriptor, path);
}

Expected<std::shared_ptr<const MappedFile>> MappedFile::adopt(int descriptor,
                                                              const std::string& path) {
  struct stat info{};
  void* address = nullptr;
  Error error = Error::success();
  if (fstat(descriptor, &info) != 0) {
    error = make_error(DiagCode::io, "cannot read '{0}': {1}", path, std::strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    error = make_error(DiagCode::io, "'{0}' is not a regular file", path);
  } else if (info.st_size > 0) {
    address = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, descriptor,
                   0);
    if (address == MAP_FAILED)
      error = make_error(DiagCode::io, "cannot map '{0}': {1}", path, std::strerror(errno));
  }
  close(descriptor);
  if (error) return error;
  const size_t size = address ? static_cast<size_t>(info.st_size) : 0;
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const std::byte*>(address), size}));
}

Blob blob_of(std::shared_ptr<const MappedFile> file, uint64_t offset, uint64_t size) {
  TW_CHECK(offset <= file->bytes().size() && size <= file->bytes().size() - offset,
           "range outside of the file");
  const std::span<const std::byte> bytes = file->bytes().subspan(offset, size);
  return {std::move(file), bytes};
}

}  // namespace tw
