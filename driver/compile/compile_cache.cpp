#include "driver/compile/compile_cache.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "packager/output_file.h"
#include "support/hash.h"
#include "support/regular_file.h"

namespace tw {
namespace {

namespace fs = std::filesystem;
constexpr const char *kBuild = ".build", *kObject = ".object";
constexpr size_t kHashBytes = 64;

// A build: a line with the lengths of the parts, and the parts.
std::string build_text(const CachedBuild& b) {
  std::string body;
  for (const std::string* part : {&b.library, &b.header, &b.report, &b.remarks})
    body += std::to_string(part->size()) + " ";
  body += "\n" + b.library + b.header + b.report + b.remarks;
  return body;
}

std::optional<CachedBuild> parse_build(std::string_view text) {
  std::array<size_t, 4> lengths{};
  for (size_t& length : lengths) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc() || end == text.data() + text.size()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  }
  text.remove_prefix(std::min<size_t>(text.size(), 1));
  CachedBuild out;
  size_t at = 0;
  for (std::string* part : {&out.library, &out.header, &out.report, &out.remarks}) {
    const size_t length = lengths[at++];
    if (length > text.size()) return std::nullopt;
    *part = text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string CompileCache::path_of(const std::string& key, const char* ending) const {
  return folder_ + "/" + key.substr(0, 2) + "/" + key + ending;
}

// The text of an entry, which is a hash of it and the text
std::optional<std::string> CompileCache::find_text(const std::string& path) const {
  std::error_code none;
  auto file = regular_file(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    if (!fs::is_regular_file(path, none)) fs::remove(path, none);  // it would block the entry
    return std::nullopt;
  }
  const std::string_view all = (*file)->getBuffer();
  if (all.size() < kHashBytes || sha256_hex(all.substr(kHashBytes)) != all.substr(0, kHashBytes)) {
    fs::remove(path, none);
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), none);  // marks the use
  return std::string(all.substr(kHashBytes));
}

Error CompileCache::add_text(const std::string& path, std::string_view text) const {
  std::error_code code;
  fs::create_directories(fs::path(path).parent_path(), code);
  if (code)
    return make_error(DiagCode::io, "cannot make the cache's folder '{0}': {1}",
                      fs::path(path).parent_path().string(), code.message());
  return write_file(path, sha256_hex(text) + std::string(text));
}

std::optional<CachedBuild> CompileCache::find(const std::string& key) const {
  const std::string path = path_of(key, kBuild);
  const std::optional<std::string> text = find_text(path);
  if (!text) return std::nullopt;
  std::optional<CachedBuild> build = parse_build(*text);
  std::error_code none;
  if (!build) fs::remove(path, none);
  return build;
}

Error CompileCache::add(const std::string& key, const CachedBuild& build) const {
  TW_TRY(add_text(path_of(key, kBuild), build_text(build)));
  evict();
  return Error::success();
}

std::optional<std::string> CompileCache::find_object(const std::string& key) const {
  return find_text(path_of(key, kObject));
}

Error CompileCache::add_object(const std::string& key, std::string_view object) const {
  return add_text(path_of(key, kObject), object);
}

std::optional<std::string> CachedObjects::find(const std::string& key) {
  return cache_.find_object(sha256_hex(compiler_ + key));
}

void CachedObjects::keep(const std::string& key, std::string_view object) {
  added_ = true;
  if (Error error = cache_.add_object(sha256_hex(compiler_ + key), object)) {
    const std::lock_guard lock(failing_);
    std::string text = error_text(std::move(error));
    if (failed_.empty()) failed_ = std::move(text);
  }
}

Error CachedObjects::finish() {
  if (added_) cache_.evict();
  return failed_.empty() ? Error::success() : make_error(DiagCode::io, "{0}", failed_);
}

// Other processes may add and remove entries at the same time: a file that is gone is no error.
void CompileCache::evict() const {
  struct Entry {
    fs::file_time_type used;
    std::string path;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t sum = 0;
  std::error_code none;
  for (fs::recursive_directory_iterator at(folder_, none), end; at != end; at.increment(none)) {
    const fs::directory_entry& file = *at;
    if (file.path().extension() != kBuild && file.path().extension() != kObject) continue;
    std::error_code gone;
    const Entry entry{file.last_write_time(gone), file.path().string(), file.file_size(gone)};
    if (gone) continue;
    sum += entry.bytes;
    entries.push_back(entry);
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (sum <= most_bytes_) return;
    fs::remove(entry.path, none);
    sum -= entry.bytes;
  }
}

}  // namespace tw
