// Loads a linked library into this process straight from memory. Weight packing and tuning run
// candidates like that.
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

  void* symbol(const std::string& name) const;  // null: the library has no such symbol

 private:
  LoadedLibrary(void* handle, int file) : handle_(handle), file_(file) {}
  void* handle_;
  // Stays open as long as the library does. The loader knows libraries by name, and this one's name
  // holds the file's number.
  int file_;
};

}  // namespace tw
