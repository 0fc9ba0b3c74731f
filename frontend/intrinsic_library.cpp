#include "frontend/intrinsic_library.h"

#include <algorithm>
#include <cstddef>

#include "frontend/frontend.h"

namespace tw {

// Written by runtime/embed.cmake, in the order of kFiles
extern const unsigned char kIntrinsics0[], kIntrinsics1[], kIntrinsics2[];
extern const std::size_t kIntrinsics0Size, kIntrinsics1Size, kIntrinsics2Size;

namespace {

struct Embedded {
  Arch arch;
  const char* name;
  const unsigned char* data;
  const std::size_t* size;
};
const Embedded kFiles[] = {
    {Arch::x86_64, "intrinsics/x86_64.yaml", kIntrinsics0, &kIntrinsics0Size},
    {Arch::aarch64, "intrinsics/aarch64.yaml", kIntrinsics1, &kIntrinsics1Size},
    {Arch::arm, "intrinsics/arm.yaml", kIntrinsics2, &kIntrinsics2Size},
};

std::vector<Intrinsic> read(Arch arch) {
  std::vector<Intrinsic> all;
  for (const LibraryFile& file : intrinsic_files(arch)) {
    Expected<std::vector<Intrinsic>> list = parse_intrinsics(file.text, file.name);
    TW_CHECK(bool(list), "{0}", error_text(list.takeError()));
    for (Intrinsic& i : *list) {
      i.shipped = true;
      all.push_back(std::move(i));
    }
  }
  return all;
}

const std::vector<Intrinsic>& library(Arch arch) {
  switch (arch) {
    case Arch::x86_64: {
      static const std::vector<Intrinsic> all = read(arch);
      return all;
    }
    case Arch::aarch64: {
      static const std::vector<Intrinsic> all = read(arch);
      return all;
    }
    case Arch::arm: {
      static const std::vector<Intrinsic> all = read(arch);
      return all;
    }
    case Arch::riscv64: break;
  }
  static const std::vector<Intrinsic> none;
  return none;
}

}  // namespace

std::vector<LibraryFile> intrinsic_files(Arch arch) {
  std::vector<LibraryFile> all;
  for (const Embedded& file : kFiles)
    if (file.arch == arch)
      all.push_back({file.name, {reinterpret_cast<const char*>(file.data), *file.size}});
  return all;
}

bool is_shipped(Arch arch, const std::string& name) {
  return std::ranges::count(library(arch), name, &Intrinsic::name) > 0;
}

void add_shipped_intrinsics(Target& target) {
  for (const Intrinsic& i : library(target.arch()))
    if (!target.find_intrinsic(i.name) && !std::ranges::count(target.without_intrinsics, i.name) &&
        std::ranges::all_of(i.features, [&](const std::string& f) { return target.has(f); }))
      target.intrinsics.push_back(i);
}

}  // namespace tw
