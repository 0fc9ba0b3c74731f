#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "frontend/onnx/skeleton.h"

namespace tw::onnx_import {
namespace {

// The parts of a relative path; empty when it is absolute, empty or climbs.
std::vector<std::string> path_parts(const std::string& location) {
  std::vector<std::string> parts;
  if (location.empty() || location.front() == '/' || location.find('\0') != std::string::npos)
    return {};
  for (size_t begin = 0; begin <= location.size();) {
    size_t end = location.find('/', begin);
    if (end == std::string::npos) end = location.size();
    const std::string part = location.substr(begin, end - begin);
    if (part == "..") return {};
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

// Opens folder/part/part... without following a link in any part below the folder.
int open_beneath(const std::string& folder, const std::vector<std::string>& parts) {
  int at = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; i < parts.size() && at >= 0; ++i) {
    const int kind = i + 1 < parts.size() ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK;
    const int next = openat(at, parts[i].c_str(), kind | O_NOFOLLOW | O_CLOEXEC);
    const int saved = errno;
    close(at);
    errno = saved;
    at = next;
  }
  return at;
}

}  // namespace

ExternalData::ExternalData(std::shared_ptr<const MappedFile> model, const std::string& model_path) {
  const size_t slash = model_path.rfind('/');
  folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : model_path.substr(0, slash);
  files_[kModelLocation] = std::move(model);
}

Expected<std::shared_ptr<const MappedFile>> ExternalData::file(const std::string& location,
                                                               const std::string& tensor) {
  if (auto known = files_.find(location); known != files_.end()) return known->second;
  const std::vector<std::string> parts = path_parts(location);
  if (parts.empty())
    return make_error(
        DiagCode::invalid_model,
        "external data of tensor '{0}' is at '{1}': only files below the model's folder are read",
        tensor, location);
  const int descriptor = open_beneath(folder_, parts);
  if (descriptor < 0) {
    if (errno == ELOOP)
      return make_error(DiagCode::invalid_model,
                        "external data of tensor '{0}' is at '{1}', a link: links are not followed",
                        tensor, location);
    return make_error(DiagCode::io, "cannot open '{0}' (external data of tensor '{1}'): {2}",
                      folder_ + "/" + location, tensor, std::strerror(errno));
  }
  struct stat info{};
  if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 1) {
    close(descriptor);
    return make_error(DiagCode::invalid_model,
                      "external data of tensor '{0}' is at '{1}', a file with several hard links: "
                      "copy it instead",
                      tensor, location);
  }
  TW_ASSIGN(std::shared_ptr<const MappedFile> mapped,
            MappedFile::adopt(descriptor, folder_ + "/" + location));
  return files_[location] = mapped;
}

std::string ExternalData::alias(const std::string& location) {
  std::string& known = alias_of_[location];
  if (known.empty()) {
    aliases_.push_back(location);
    known = "#" + std::to_string(aliases_.size());
  }
  return known;
}

std::vector<std::string> ExternalData::paths() const {
  std::vector<std::string> list;
  for (const std::string& location : aliases_) list.push_back(folder_ + "/" + location);
  return list;
}

Expected<Blob> ExternalData::range(const std::string& name, uint64_t offset, uint64_t length,
                                   const std::string& tensor) {
  size_t index = 0;
  const bool aliased = name.size() > 1 && name[0] == '#' &&
                       !llvm::StringRef(name).drop_front().getAsInteger(10, index) && index >= 1 &&
                       index <= aliases_.size();
  const std::string& location = aliased ? aliases_[index - 1] : name;
  TW_ASSIGN(std::shared_ptr<const MappedFile> mapped, file(location, tensor));
  const uint64_t size = mapped->bytes().size();
  if (offset > size || length > size - offset)
    return make_error(DiagCode::invalid_model,
                      "tensor '{0}' wants {1} bytes at {2} of '{3}', which has only {4} bytes",
                      tensor, length, offset, location, size);
  const uint64_t end = offset + length;
  std::map<uint64_t, uint64_t>& taken = taken_[location];
  auto next = taken.lower_bound(offset);
  const bool same = next != taken.end() && next->first == offset && next->second == end;
  const bool hits_next = next != taken.end() && next->first < end;
  const bool hits_previous = next != taken.begin() && std::prev(next)->second > offset;
  if (length > 0 && !same) {
    if (hits_next || hits_previous)
      return make_error(
          DiagCode::invalid_model,
          "external data of tensor '{0}' ('{1}', {2} bytes at {3}) overlaps another tensor's",
          tensor, location, length, offset);
    taken[offset] = end;
  }
  return blob_of(std::move(mapped), offset, length);
}

}  // namespace tw::onnx_import
