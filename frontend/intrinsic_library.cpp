#include "frontend/intrinsic_library.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "frontend/frontend.h"
#include "support/embedded_file.h"

namespace tw {

// runtime/embed.cmake writes this table.
extern const std::vector<EmbeddedFile> kIntrinsicFiles;

namespace {

std::string file_name(const EmbeddedFile& file) {
  return "intrinsics/" + std::string(file.name) + ".yaml";
}

std::vector<Intrinsic> read(const EmbeddedFile& file) {
  Expected<std::vector<Intrinsic>> list = parse_intrinsics(std::string(file.text), file_name(file));
  TW_CHECK(bool(list), "{0}", error_text(list.takeError()));
  for (Intrinsic& i : *list) i.shipped = true;
  return std::move(*list);
}

// The instructions of an architecture, or of a device's driver. A file is read when it is first
// needed.
const std::vector<Intrinsic>& library(std::string_view of) {
  static std::mutex mutex;
  static std::map<std::string_view, std::vector<Intrinsic>> all;
  static const std::vector<Intrinsic> none;
  const std::lock_guard lock(mutex);
  const auto file = std::ranges::find(kIntrinsicFiles, of, &EmbeddedFile::name);
  if (file == kIntrinsicFiles.end()) return none;
  const auto [found, added] = all.try_emplace(file->name);
  if (added) found->second = read(*file);
  return found->second;
}

// The number of a compute capability, "sm_90a" -> 90. A chip does what chips with smaller numbers
// do.
std::optional<int> capability(std::string_view feature) {
  int number = 0;
  if (!feature.starts_with("sm_")) return std::nullopt;
  const auto read = std::from_chars(feature.data() + 3, feature.data() + feature.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}
bool offers(const Target& target, const std::string& feature) {
  const std::optional<int> needed = capability(feature);
  if (!needed) return target.has(feature);
  return std::ranges::any_of(target.features, [&](const std::string& own) {
    return capability(own).value_or(0) >= *needed;
  });
}

}  // namespace

std::vector<LibraryFile> intrinsic_files(Arch arch) {
  std::vector<LibraryFile> all;
  for (const EmbeddedFile& file : kIntrinsicFiles)
    if (file.name == arch_name(arch)) all.push_back({file_name(file), std::string(file.text)});
  return all;
}

bool is_shipped(Arch arch, const std::string& name) {
  return std::ranges::count(library(arch_name(arch)), name, &Intrinsic::name) > 0;
}

void add_shipped_intrinsics(Target& target) {
  const std::string_view of = target.driver.empty() ? arch_name(target.arch())
                                                    : std::string_view(target.driver);
  for (const Intrinsic& i : library(of))
    if (!target.find_intrinsic(i.name) && !std::ranges::count(target.without_intrinsics, i.name) &&
        std::ranges::all_of(i.features, [&](const std::string& f) { return offers(target, f); }))
      target.intrinsics.push_back(i);
}

}  // namespace tw
