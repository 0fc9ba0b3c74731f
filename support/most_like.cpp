#include "support/most_like.h"

#include <llvm/ADT/StringRef.h>

#include <algorithm>

namespace tw {

std::vector<std::string> most_like(std::string_view name, std::vector<std::string> all,
                                   size_t count) {
  const auto distance = [&](const std::string& other) {
    size_t same = 0;
    while (same < std::min(name.size(), other.size()) && name[same] == other[same]) ++same;
    return 2 * static_cast<int>(llvm::StringRef(name).edit_distance(other)) -
           static_cast<int>(same);
  };
  std::ranges::stable_sort(all, {}, distance);
  all.resize(std::min(all.size(), count));
  return all;
}

std::string did_you_mean(std::string_view name, std::vector<std::string> all) {
  constexpr size_t kNamed = 3;
  std::erase_if(all, [&](const std::string& other) {
    const size_t changed = llvm::StringRef(name).edit_distance_insensitive(other),
                 longer = std::max(name.size(), other.size());
    const bool begins = name.size() > 1 && other.starts_with(name);
    return !begins && (3 * changed > longer + 1 || changed == longer);
  });
  std::string text;
  const std::vector<std::string> near = most_like(name, std::move(all), kNamed);
  for (size_t i = 0; i < near.size(); ++i)
    text += (i == 0 ? "did you mean '" : i + 1 < near.size() ? "', '" : "' or '") + near[i];
  return text.empty() ? "" : text + "'?";
}

}  // namespace tw
