#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "frontend/frontend.h"
#include "frontend/onnx/skeleton.h"

namespace tw::onnx_import {
namespace {

// The parts of a relative path; empty if the path is absolute, empty or contains "..".
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

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC,
              kFile = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    const int saved = errno;
    if (number_ >= 0) close(number_);
    errno = saved;
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Opens the folder of folder/part/part..., without following a link in any part below `folder`.
Descriptor open_parent(const std::string& folder, const std::vector<std::string>& parts) {
  Descriptor at(open(folder.c_str(), kFolder));
  for (size_t i = 0; i + 1 < parts.size() && at.get() >= 0; ++i)
    at = Descriptor(openat(at.get(), parts[i].c_str(), kFolder | O_NOFOLLOW));
  return at;
}

std::pair<std::string, std::string> folder_and_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// A link of Hugging Face's cache. The cache keeps the files of a repository in one folder, and the
// tree of a version consists of links into it: "../../blobs/NAME".
struct CacheLink {
  std::string folder, name;  // the folder as it is written in the link
};

std::optional<CacheLink> cache_link(int at, const std::string& name) {
  constexpr std::string_view up = "../", blobs = "blobs/";
  std::array<char, PATH_MAX> text{};
  const ssize_t length = readlinkat(at, name.c_str(), text.data(), text.size());
  if (length <= 0 || static_cast<size_t>(length) == text.size()) return std::nullopt;
  std::string_view rest(text.data(), static_cast<size_t>(length));
  while (rest.starts_with(up)) rest.remove_prefix(up.size());
  if (rest.data() == text.data() || !rest.starts_with(blobs)) return std::nullopt;
  rest.remove_prefix(blobs.size());
  if (rest.empty() || rest == "." || rest == ".." || rest.find('/') != std::string_view::npos)
    return std::nullopt;
  const size_t before = static_cast<size_t>(length) - rest.size() - 1;
  return CacheLink{{text.data(), before}, std::string(rest)};
}

// Opens the file behind a link in the folder `at`, if the model is such a link too and both lead
// into one folder; else returns -1.
int open_cached(int at, const std::string& name, const std::string& model_path) {
  const auto [model_folder, model_name] = folder_and_name(model_path);
  const Descriptor model_at(open(model_folder.c_str(), kFolder));
  const auto model = cache_link(model_at.get(), model_name), data = cache_link(at, name);
  if (!model || !data) return -1;
  const Descriptor first(openat(model_at.get(), model->folder.c_str(), kFolder | O_NOFOLLOW)),
      second(openat(at, data->folder.c_str(), kFolder | O_NOFOLLOW));
  struct stat of_model{}, of_data{};
  if (first.get() < 0 || second.get() < 0 || fstat(first.get(), &of_model) != 0 ||
      fstat(second.get(), &of_data) != 0 || of_model.st_dev != of_data.st_dev ||
      of_model.st_ino != of_data.st_ino)
    return -1;
  return openat(second.get(), data->name.c_str(), kFile);
}

}  // namespace

ExternalData::ExternalData(std::shared_ptr<const MappedFile> model, const std::string& model_path)
    : model_path_(model_path), folder_(folder_and_name(model_path).first) {
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
  const Descriptor parent = open_parent(folder_, parts);
  int descriptor = parent.get() < 0 ? -1 : openat(parent.get(), parts.back().c_str(), kFile);
  const bool is_link = descriptor < 0 && errno == ELOOP;
  if (is_link) descriptor = open_cached(parent.get(), parts.back(), model_path_);
  if (descriptor < 0) {
    if (is_link)
      return make_error(DiagCode::invalid_model,
                        "external data of tensor '{0}' is at '{1}', a link: links are not followed "
                        "but to the 'blobs' of the repository that the model's own link leads to",
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

namespace tw {

std::string cache_folder(const std::string& model_path) {
  const auto [folder, name] = onnx_import::folder_and_name(model_path);
  const onnx_import::Descriptor at(open(folder.c_str(), onnx_import::kFolder));
  const auto link = onnx_import::cache_link(at.get(), name);
  return link ? folder + "/" + link->folder : "";
}

}  // namespace tw
