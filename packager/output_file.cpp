#include "packager/output_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace tw {
namespace {

Error write_error(const std::string& path, int code) {
  return make_error(DiagCode::io, "cannot write '{0}': {1}", path, std::strerror(code));
}

int open_new(const std::string& name, int mode) {
  const int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC;
  int file = ::open(name.c_str(), flags, mode);
  if (file < 0 && errno == EEXIST && ::unlink(name.c_str()) == 0) file = ::open(name.c_str(), flags, mode);  // of a dead process
  return file;
}

}  // namespace

Expected<OutputFile> OutputFile::create(std::string path, uint64_t size, bool executable) {
  std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  const int handle = open_new(temporary, executable ? 0777 : 0666);
  if (handle < 0) return write_error(path, errno);
  OutputFile file(std::move(path), std::move(temporary), handle);
  if (size > uint64_t{INT64_MAX}) return write_error(file.path_, EFBIG);
  const int code = size > 0 ? ::posix_fallocate(handle, 0, static_cast<off_t>(size)) : 0;
  if (code != 0) return write_error(file.path_, code);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), file_(other.file_) {
  other.file_ = -1;
}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
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

Error OutputFile::fill(uint64_t offset, uint64_t size, llvm::function_ref<Error(std::span<std::byte>)> body) {
  if (size == 0) return body({});
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)), start = offset / page * page, lead = offset - start;
  void* map = ::mmap(nullptr, lead + size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(start));
  if (map == MAP_FAILED) {  // a file system without shared mappings: by way of memory
    std::vector<std::byte> buffer(size);
    TW_TRY(body(buffer));
    return write(offset, {reinterpret_cast<const char*>(buffer.data()), buffer.size()});
  }
  Error error = body({static_cast<std::byte*>(map) + lead, size});
  ::munmap(map, lead + size);
  return error;
}

Error OutputFile::commit() {
  const int file = file_;
  file_ = -1;
  int code = ::close(file) == 0 ? 0 : errno;  // network file systems report a full disk here
  if (code == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) code = errno;
  if (code == 0) return Error::success();
  ::unlink(temporary_.c_str());
  return write_error(path_, code);
}

Error write_file(const std::string& path, std::string_view bytes) {
  TW_ASSIGN(OutputFile file, OutputFile::create(path, bytes.size()));
  TW_TRY(file.write(0, bytes));
  return file.commit();
}

}  // namespace tw
