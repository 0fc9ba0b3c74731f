#include "packager/loaded_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <utility>

#include "packager/memory_file.h"

namespace tw {

Expected<LoadedLibrary> LoadedLibrary::load(const LinkedImage& image) {
  TW_ASSIGN(MemoryFile file, MemoryFile::create(image.bytes));
  void* handle = ::dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return make_error(DiagCode::io, "cannot load a library from memory: {0}", ::dlerror());
  return LoadedLibrary(handle, file.release());
}

LoadedLibrary::LoadedLibrary(LoadedLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), file_(std::exchange(other.file_, -1)) {}

LoadedLibrary::~LoadedLibrary() {
  if (!handle_) return;
  ::dlclose(handle_);
  ::close(file_);
}

void* LoadedLibrary::symbol(const std::string& name) const {
  return ::dlsym(handle_, name.c_str());
}

}  // namespace tw
