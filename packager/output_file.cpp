#include "packager/output_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "support/file_pages.h"

namespace tw {
namespace {

Error write_error(const std::string& path, int code) {
  return make_error(DiagCode::io, "cannot write '{0}': {1}", path, std::strerror(code));
}

std::string temporary_name(const std::string& path) {
  return path + ".tmp-" + std::to_string(::getpid());
}

int open_unnamed(const std::string& path, int mode) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int open_named(const std::string& name, int mode) {
  const int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC;
  int file = ::open(name.c_str(), flags, mode);
  // A file of that name is left from a dead process with the same id.
  if (file < 0 && errno == EEXIST && ::unlink(name.c_str()) == 0)
    file = ::open(name.c_str(), flags, mode);
  return file;
}

}  // namespace

Expected<OutputFile> OutputFile::create(std::string path, uint64_t size, bool executable,
                                        bool named) {
  const int mode = executable ? 0777 : 0666;
  int handle = named ? -1 : open_unnamed(path, mode);
  std::optional<OutputFile> file;
  {
    const EndSignalsWait until_registered;
    named = handle < 0;
    if (named) handle = open_named(temporary_name(path), mode);
    if (handle < 0) return write_error(path, errno);
    file.emplace(OutputFile(std::move(path), handle, named));
  }
  if (size > uint64_t{INT64_MAX}) return write_error(file->path_, EFBIG);
  const int code = size > 0 ? ::posix_fallocate(handle, 0, static_cast<off_t>(size)) : 0;
  if (code != 0) return write_error(file->path_, code);
  return std::move(*file);
}

OutputFile::OutputFile(std::string path, int file, bool named)
    : path_(std::move(path)), temporary_(temporary_name(path_)), file_(file) {
  if (named) removed_ = std::make_unique<RemovedOnEndSignal>(temporary_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      removed_(std::move(other.removed_)),
      file_(std::exchange(other.file_, -1)) {}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  ::close(file_);
  if (removed_) ::unlink(temporary_.c_str());
}

Error OutputFile::write(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return write_error(path_, done < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return Error::success();
}

Error OutputFile::fill(uint64_t offset, uint64_t size,
                       llvm::function_ref<Error(std::span<std::byte>)> body) {
  if (size == 0) return body({});
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)),
                 start = offset / page * page, lead = offset - start;
  void* map = ::mmap(nullptr, lead + size, PROT_READ | PROT_WRITE, MAP_SHARED, file_,
                     static_cast<off_t>(start));
  if (map == MAP_FAILED) {  // a file system without shared mappings takes a buffer
    std::vector<std::byte> buffer(size);
    TW_TRY(body(buffer));
    return write(offset, {reinterpret_cast<const char*>(buffer.data()), buffer.size()});
  }
  const std::span<std::byte> bytes(static_cast<std::byte*>(map) + lead, size);
  const auto filled = [&] {
    const PagesLeave leaving(bytes);
    return body(bytes);
  };
  Error error = filled();
  ::munmap(map, lead + size);
  return error;
}

Expected<std::unique_ptr<llvm::MemoryBuffer>> OutputFile::contents() const {
  struct stat info{};
  if (::fstat(file_, &info) != 0) return write_error(path_, errno);
  auto buffer = llvm::MemoryBuffer::getOpenFile(file_, path_, static_cast<uint64_t>(info.st_size),
                                                false);
  if (!buffer)
    return make_error(DiagCode::io, "cannot read '{0}' back: {1}", path_,
                      buffer.getError().message());
  return std::move(*buffer);
}

Error OutputFile::commit() {
  // rename() is the only call that replaces a file, so an unnamed file has the temporary name for a
  // moment.
  const EndSignalsWait until_done;
  const int file = std::exchange(file_, -1);
  int code = 0;
  if (!removed_) {
    const std::string unnamed = "/proc/self/fd/" + std::to_string(file);
    const auto link = [&] {
      return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) ==
             0;
    };
    if (!link() && (errno != EEXIST || ::unlink(temporary_.c_str()) != 0 || !link())) code = errno;
  }
  // Network file systems report a full disk at close().
  if (::close(file) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) code = errno;
  if (code != 0) ::unlink(temporary_.c_str());
  removed_.reset();
  return code == 0 ? Error::success() : write_error(path_, code);
}

Error write_file(const std::string& path, std::string_view bytes, bool executable) {
  TW_ASSIGN(OutputFile file, OutputFile::create(path, bytes.size(), executable));
  TW_TRY(file.write(0, bytes));
  return file.commit();
}

}  // namespace tw
