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
constexpr const char* kEnding = ".build";
constexpr size_t kHashBytes = 64;

// An entry: a hash of the rest, a line with the lengths of the parts, and the parts.
std::string entry_text(const CachedBuild& b) {
  std::string body;
  for (const std::string* part : {&b.library, &b.header, &b.report, &b.remarks})
    body += std::to_string(part->size()) + " ";
  body += "\n" + b.library + b.header + b.report + b.remarks;
  return sha256_hex(body) + body;
}

std::optional<CachedBuild> parse_entry(std::string_view text) {
  if (text.size() < kHashBytes || sha256_hex(text.substr(kHashBytes)) != text.substr(0, kHashBytes))
    return std::nullopt;
  text.remove_prefix(kHashBytes);
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

std::string CompileCache::path_of(const std::string& key) const {
  return folder_ + "/" + key.substr(0, 2) + "/" + key + kEnding;
}

std::optional<CachedBuild> CompileCache::find(const std::string& key) const {
  const std::string path = path_of(key);
  std::error_code none;
  auto file = regular_file(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    if (!fs::is_regular_file(path, none)) fs::remove(path, none);  // it would block the entry
    return std::nullopt;
  }
  std::optional<CachedBuild> build = parse_entry((*file)->getBuffer());
  if (build) fs::last_write_time(path, fs::file_time_type::clock::now(), none);  // marks the use
  else fs::remove(path, none);
  return build;
}

Error CompileCache::add(const std::string& key, const CachedBuild& build) const {
  const std::string path = path_of(key);
  std::error_code code;
  fs::create_directories(fs::path(path).parent_path(), code);
  if (code)
    return make_error(DiagCode::io, "cannot make the cache's folder '{0}': {1}",
                      fs::path(path).parent_path().string(), code.message());
  TW_TRY(write_file(path, entry_text(build)));
  evict();
  return Error::success();
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
    if (file.path().extension() != kEnding) continue;
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
