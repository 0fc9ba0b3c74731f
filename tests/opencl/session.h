// For tests: the one OpenCL host of the process, and the targets of configs/.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "frontend/frontend.h"
#include "tests/opencl/host.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TW_ADDRESS_SANITIZER 1
#endif
#endif

namespace tw::test {

inline Target device_target(const std::string& name) {
  Expected<Target> target = load_target(name, {std::string(TW_SOURCE_DIR) + "/configs"});
  if (!target) FAIL(error_text(target.takeError()));
  return target->main_device();
}

// A new folder each run, where PoCL keeps compiled kernels
struct CacheFolder {
  std::string path = (std::filesystem::temp_directory_path() / "tw_pocl_XXXXXX").string();
  CacheFolder() {
    REQUIRE(mkdtemp(path.data()) != nullptr);
    setenv("POCL_CACHE_DIR", path.c_str(), 1);
  }
  ~CacheFolder() { std::filesystem::remove_all(path); }
};

// Returns null without OpenCL, and under the address sanitizer, which would check the driver's
// compiler. Prints the reason once.
inline OpenClHost* shared_host() {
  static CacheFolder cache;
#ifdef TW_ADDRESS_SANITIZER
  static const std::string why_not = "the address sanitizer is on";
  static const std::unique_ptr<OpenClHost> host;
#else
  static std::string why_not;
  static const std::unique_ptr<OpenClHost> host = OpenClHost::open(why_not);
#endif
  static const bool told = [] {
    if (!host)
      std::cout << "SKIPPED: kernels were not run on OpenCL: " << why_not
                << " (scripts/setup.sh opencl)" << std::endl;
    return true;
  }();
  static_cast<void>(told);
  return host.get();
}

}  // namespace tw::test
