#include "runtime/embedded.h"

#include <cstddef>
#include <span>

namespace tw {

// Written by embed.cmake, in the order of CMakeLists.txt.
extern const unsigned char kFile0[], kFile1[], kFile2[], kFile3[], kFile4[], kFile5[], kFile6[],
    kFile7[], kFile8[];
extern const std::size_t kFile0Size, kFile1Size, kFile2Size, kFile3Size, kFile4Size, kFile5Size,
    kFile6Size, kFile7Size, kFile8Size;

namespace {

#define FEATURE(name, ...) name,
constexpr std::string_view kX86Features[] = {
#include "runtime/cpu_x86.def"
};
constexpr std::string_view kAarch64Features[] = {
#include "runtime/cpu_aarch64.def"
};
constexpr std::string_view kArmFeatures[] = {
#include "runtime/cpu_arm.def"
};
constexpr std::string_view kRiscvFeatures[] = {
#include "runtime/cpu_riscv.def"
};
#undef FEATURE

struct Architecture {
  std::string_view prefix;  // of the triple
  const unsigned char* data;
  const std::size_t* size;
  const unsigned char* ops;
  const std::size_t* ops_size;
  std::span<const std::string_view> features;
};
const Architecture kArchitectures[] = {
    {"x86_64", kFile0, &kFile0Size, kFile5, &kFile5Size, kX86Features},
    {"aarch64", kFile1, &kFile1Size, kFile6, &kFile6Size, kAarch64Features},
    {"arm64", kFile1, &kFile1Size, kFile6, &kFile6Size, kAarch64Features},
    {"arm", kFile2, &kFile2Size, kFile7, &kFile7Size, kArmFeatures},
    {"riscv64", kFile3, &kFile3Size, kFile8, &kFile8Size, kRiscvFeatures},
};

const Architecture* find(std::string_view triple) {
  for (const Architecture& a : kArchitectures)
    if (triple.starts_with(a.prefix)) return &a;
  return nullptr;
}

std::string_view text(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

std::string_view runtime_object(std::string_view triple) {
  const Architecture* a = find(triple);
  return a ? text(a->data, *a->size) : std::string_view();
}

std::string_view operators_object(std::string_view triple) {
  const Architecture* a = find(triple);
  return a ? text(a->ops, *a->ops_size) : std::string_view();
}

std::vector<std::string_view> runtime_cpu_features(std::string_view triple) {
  const Architecture* a = find(triple);
  if (!a) return {};
  return {a->features.begin(), a->features.end()};
}

std::string_view public_header() { return text(kFile4, kFile4Size); }

}  // namespace tw
