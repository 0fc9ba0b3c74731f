// A cache of compiled models, in a folder that processes and machines may share. The key is a hash
// of everything a build depends on.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "support/diag.h"

namespace tw {

struct CachedBuild {
  std::string library, header;
  std::string report;  // JSON, as compile --json prints it
  std::string remarks;
};

class CompileCache {
 public:
  // The folder is made when something is added. most_bytes limits all entries together.
  CompileCache(std::string folder, uint64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  // key is in hex. A damaged entry is removed and counts as missing.
  std::optional<CachedBuild> find(const std::string& key) const;
  // Adds an entry, then removes entries whose last use is longest ago until the rest fits. An entry
  // appears whole or not at all. Errors: the folder cannot be written.
  Error add(const std::string& key, const CachedBuild& build) const;

 private:
  std::string path_of(const std::string& key) const;
  void evict() const;
  std::string folder_;
  uint64_t most_bytes_;
};

}  // namespace tw
