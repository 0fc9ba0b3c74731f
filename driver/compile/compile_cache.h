// A cache of compiled models and of their kernels' objects, in a folder that processes and machines
// may share. The key is a hash of everything that an entry depends on.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "backends/backend.h"
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

  // Objects are found and added likewise, but the limit holds only after evict().
  std::optional<std::string> find_object(const std::string& key) const;
  Error add_object(const std::string& key, std::string_view object) const;
  void evict() const;

 private:
  std::string path_of(const std::string& key, const char* ending) const;
  std::optional<std::string> find_text(const std::string& path) const;
  Error add_text(const std::string& path, std::string_view text) const;
  std::string folder_;
  uint64_t most_bytes_;
};

// The objects of one compilation's kernels. `compiler` tells this compiler from others.
class CachedObjects : public ObjectStore {
 public:
  CachedObjects(CompileCache cache, std::string compiler)
      : cache_(std::move(cache)), compiler_(std::move(compiler)) {}
  std::optional<std::string> find(const std::string& key) override;
  void keep(const std::string& key, std::string_view object) override;
  // Brings the cache to its size. Errors: the first object that could not be kept.
  Error finish();

 private:
  CompileCache cache_;
  std::string compiler_;
  std::atomic<bool> added_ = false;
  std::mutex failing_;
  std::string failed_;
};

}  // namespace tw
