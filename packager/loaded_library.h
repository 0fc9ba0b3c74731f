// A linked library loaded into this process straight from memory: weight packing and tuning
// candidates.
#pragma once
#include <string>

#include "packager/link.h"

namespace tw {

class LoadedLibrary {
 public:
  static Expected<LoadedLibrary> load(const LinkedImage& image);
  LoadedLibrary(LoadedLibrary&& other) noexcept;
  LoadedLibrary& operator=(LoadedLibrary&&) = delete;
  ~LoadedLibrary();

  void* symbol(const std::string& name) const;  // null: not there

 private:
  LoadedLibrary(void* handle, int file) : handle_(handle), file_(file) {}
  void* handle_;
  // Open as long as the library: the loader knows libraries by name, and this one's holds the
  // number
  int file_;
};

}  // namespace tw
