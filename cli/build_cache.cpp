#include "cli/build_cache.h"

#include <llvm/Config/llvm-config.h>

#include <cstdlib>

#include "frontend/budget.h"
#include "frontend/mapped_file.h"
#include "support/hash.h"

namespace tw {
namespace {

constexpr const char* kCacheSize = "5GiB";
constexpr const char* kSizeVariable = "TILEWRIGHT_CACHE_SIZE";

std::string from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

// Adds the part behind its length, so that no two lists of parts give one text.
void add_part(std::string& text, std::string_view part) {
  text += std::to_string(part.size()) + ":";
  text += part;
}

}  // namespace

void CacheFlags::define(Flags& flags) {
  flags.text("--cache", folder, "DIR",
             "Take the library from this folder where it was compiled from the same before, else "
             "put it there; default: TILEWRIGHT_CACHE, or no cache");
  flags.text("--cache-size", size, "SIZE",
             "Of the cache: what was used longest ago is removed; default: TILEWRIGHT_CACHE_SIZE, "
             "or 5GiB");
}

Expected<std::optional<CompileCache>> CacheFlags::open() const {
  const std::string place = folder.empty() ? from_environment("TILEWRIGHT_CACHE") : folder;
  if (place.empty()) return std::optional<CompileCache>();
  std::string most = size.empty() ? from_environment(kSizeVariable) : size;
  if (most.empty()) most = kCacheSize;
  const std::optional<int64_t> bytes = size_from_text(most);
  if (!bytes)
    return make_error(DiagCode::invalid_argument, "{0} '{1}': a size such as 500MiB or 5GiB",
                      size.empty() ? kSizeVariable : "--cache-size", most);
  return std::optional<CompileCache>(CompileCache(place, static_cast<uint64_t>(*bytes)));
}

// The target's text; with several processors, the texts of all.
std::string prints(const Target& target) {
  std::string text = print(target);
  if (target.wider.empty()) return text;
  for (const Target& other : target.wider) text += print(other);
  return text + codegen_hash(target);
}

Expected<std::string> compiler_identity() {
  static std::string known;  // it is asked from one thread, and the program stays
  if (known.empty()) {
    TW_ASSIGN(const std::shared_ptr<const MappedFile> program, MappedFile::open("/proc/self/exe"));
    known = sha256_hex(program->text()) + " " + LLVM_VERSION_STRING;
  }
  return known;
}

Expected<std::string> build_key(const Target& target, const FileRoles& files,
                                const std::vector<std::string>& words) {
  TW_ASSIGN(const std::string compiler, compiler_identity());
  TW_ASSIGN(const std::string hashes, files.hashes());
  std::string text;
  for (const std::string& part : {compiler, prints(target), hashes}) add_part(text, part);
  for (const std::string& word : words) add_part(text, word);
  return sha256_hex(text);
}

}  // namespace tw
