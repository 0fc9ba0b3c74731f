// For tests: a kernel compiled, linked and loaded into this process.
#pragma once
#include <dlfcn.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include "backends/backend.h"
#include "packager/link.h"

namespace tw {

inline Target host_target() {
  Target t = baseline_target(Arch::x86_64);
  t.name = "host";
  t.cpu = llvm::sys::getHostCPUName().str();
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    if (feature.second) t.features.push_back(feature.first().str());
  std::sort(t.features.begin(), t.features.end());
  t.vector_bits = t.has("avx512f") ? 512 : t.has("avx2") ? 256 : 128;
  return t;
}

class LoadedKernel {
 public:
  static Expected<LoadedKernel> compile(const Target& target, const Kernel& kernel) {
    TW_ASSIGN(std::unique_ptr<Backend> backend, make_backend(target));
    TW_ASSIGN(std::string object, backend->compile_kernel(kernel));
    LinkRequest request;
    request.objects = {std::move(object)};
    request.exports = {kernel.name};
    TW_ASSIGN(LinkedImage image, link_shared(request));
    std::string path = (std::filesystem::temp_directory_path() / "tw_kernel_XXXXXX").string();
    int file = mkstemp(path.data());
    if (file < 0) return make_error(DiagCode::io, "no temporary file");
    close(file);
    std::ofstream(path, std::ios::binary) << image.bytes;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    unlink(path.c_str());
    if (!handle) return make_error(DiagCode::io, "{0}", dlerror());
    return LoadedKernel(handle, reinterpret_cast<Function>(dlsym(handle, kernel.name.c_str())));
  }
  LoadedKernel(LoadedKernel&& o) noexcept
      : handle_(std::exchange(o.handle_, nullptr)), function_(o.function_) {}
  ~LoadedKernel() {
    if (handle_) dlclose(handle_);
  }
  void operator()(std::span<void* const> buffers, void* workspace = nullptr,
                  const int64_t* symbols = nullptr) const {
    function_(buffers.data(), workspace, symbols);
  }

 private:
  using Function = void (*)(void* const*, void*, const int64_t*);
  LoadedKernel(void* handle, Function function) : handle_(handle), function_(function) {}
  void* handle_;
  Function function_;
};

}  // namespace tw
