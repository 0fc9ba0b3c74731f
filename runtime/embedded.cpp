#include "runtime/embedded.h"

#include <cstddef>
#include <span>

namespace tw {

// embed.cmake writes these arrays, in the order of CMakeLists.txt.
#define FILE(n)                          \
  extern const unsigned char kFile##n[]; \
  extern const std::size_t kFile##n##Size;
FILE(0)
FILE(1)
FILE(2)
FILE(3)
FILE(4)
FILE(5)
FILE(6)
FILE(7)
FILE(8)
FILE(9)
FILE(10)
FILE(11)
FILE(12)
FILE(13)
FILE(14)
FILE(15)
FILE(16)
FILE(17)
FILE(18)
FILE(19)
FILE(20)
FILE(21)
FILE(22)
FILE(23)
FILE(24)
FILE(25)
FILE(26)
FILE(27)
FILE(28)
FILE(29)
#undef FILE

namespace {

#define FEATURE(name, ...) name,
constexpr std::string_view kX86Features[] = {
#include "runtime/cpu/x86.def"
};
constexpr std::string_view kAarch64Features[] = {
#include "runtime/cpu/aarch64.def"
};
constexpr std::string_view kArmFeatures[] = {
#include "runtime/cpu/arm.def"
};
constexpr std::string_view kRiscvFeatures[] = {
#include "runtime/cpu/riscv.def"
};
#undef FEATURE

struct Object {
  const unsigned char* data = nullptr;
  const std::size_t* size = nullptr;
};
struct Architecture {
  std::string_view prefix;  // prefix of the triple
  Object runtime, operators, runner;
  std::span<const std::string_view> features;
};
#define OBJECT(n) {kFile##n, &kFile##n##Size}
const Architecture kArchitectures[] = {
    {"x86_64-none", OBJECT(9), OBJECT(10), {}, kX86Features},
    {"aarch64-none", OBJECT(11), OBJECT(12), {}, kAarch64Features},
    {"armv7-none", OBJECT(13), OBJECT(14), {}, kArmFeatures},
    {"riscv64-none", OBJECT(15), OBJECT(16), {}, kRiscvFeatures},
    {"thumbv7em-none", OBJECT(17), OBJECT(18), {}, {}},
    {"thumbv8m.main-none", OBJECT(19), OBJECT(20), {}, {}},
    {"thumbv8.1m.main-none", OBJECT(21), OBJECT(22), {}, {}},
    {"x86_64", OBJECT(1), OBJECT(2), OBJECT(23), kX86Features},
    {"aarch64", OBJECT(3), OBJECT(4), OBJECT(24), kAarch64Features},
    {"arm64", OBJECT(3), OBJECT(4), OBJECT(24), kAarch64Features},
    {"armv7-linux-androideabi", OBJECT(27), OBJECT(28), OBJECT(29), kArmFeatures},
    {"arm", OBJECT(5), OBJECT(6), OBJECT(25), kArmFeatures},
    {"riscv64", OBJECT(7), OBJECT(8), OBJECT(26), kRiscvFeatures},
};
#undef OBJECT

const Architecture* find(std::string_view triple) {
  for (const Architecture& a : kArchitectures)
    if (triple.starts_with(a.prefix)) return &a;
  return nullptr;
}

std::string_view text(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::string_view bytes_of(const Object& object) {
  return object.data ? text(object.data, *object.size) : std::string_view();
}

}  // namespace

std::string_view runtime_object(std::string_view triple) {
  const Architecture* a = find(triple);
  return a ? bytes_of(a->runtime) : std::string_view();
}

std::string_view operators_object(std::string_view triple) {
  const Architecture* a = find(triple);
  return a ? bytes_of(a->operators) : std::string_view();
}

std::string_view runner_object(std::string_view triple) {
  const Architecture* a = find(triple);
  return a ? bytes_of(a->runner) : std::string_view();
}

std::vector<std::string_view> runtime_cpu_features(std::string_view triple) {
  const Architecture* a = find(triple);
  if (!a) return {};
  return {a->features.begin(), a->features.end()};
}

std::string_view status_declaration() {
  const std::string_view header = public_header(), end = "#endif /* TILEWRIGHT_STATUS */\n";
  const size_t first = header.find("#ifndef TILEWRIGHT_STATUS");
  return header.substr(first, header.find(end) + end.size() - first);
}

std::string_view public_header() { return text(kFile0, kFile0Size); }

}  // namespace tw
