#include "packager/android.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/ObjectYAML/yaml2obj.h>
#include <llvm/Support/FormatVariadic.h>

#include <algorithm>
#include <array>

#include "packager/lld.h"

namespace tw {
namespace {

struct SystemLibrary {
  const char* soname;
  std::vector<const char*> names;
};
// The names of undefined_symbol_allowed(), by the library that defines them in each version of
// Android
const std::array<SystemLibrary, 2> kLibraries = {{{"libc.so",
                                                   {"mmap", "munmap", "syscall", "memset", "memcpy",
                                                    "getenv", "pthread_create", "pthread_join"}},
                                                  {"libdl.so", {"dlopen", "dlsym"}}}};

// Makes an object that defines the names, from the text form that LLVM's yaml2obj reads.
Expected<std::string> object_with(const std::vector<const char*>& names, const ElfView& image) {
  std::string text = llvm::formatv(
                         "--- !ELF\nFileHeader: {{Class: {0}, Data: ELFDATA2LSB, Type: ET_REL, "
                         "Machine: {1}}\nSections: [{{Name: .text, Type: SHT_PROGBITS, Flags: "
                         "[SHF_ALLOC, SHF_EXECINSTR], Size: 4}]\nSymbols:\n",
                         image.is64() ? "ELFCLASS64" : "ELFCLASS32", image.machine())
                         .str();
  for (const char* name : names)
    text += llvm::formatv("  - {{Name: {0}, Type: STT_FUNC, Section: .text, Binding: STB_GLOBAL}\n",
                          name);
  llvm::SmallString<0> storage;
  std::string problem;
  const auto object = llvm::yaml::yaml2ObjectFile(
      storage, text, [&](const llvm::Twine& message) { problem = message.str(); });
  if (!object) return make_error(DiagCode::io, "cannot make a stub of a library: {0}", problem);
  return storage.str().str();
}

}  // namespace

bool is_android(std::string_view triple) {
  return triple.ends_with("-android") || triple.ends_with("-androideabi");
}

Expected<std::vector<std::string>> android_libraries(const ElfView& image,
                                                     const std::vector<ElfSymbol>& symbols) {
  std::vector<std::string> libraries;
  for (const SystemLibrary& library : kLibraries) {
    const auto has = [&](const ElfSymbol& s) {
      return !s.defined && std::ranges::count(library.names, s.name) > 0;
    };
    if (std::ranges::none_of(symbols, has)) continue;
    TW_ASSIGN(std::string object, object_with(library.names, image));
    TW_ASSIGN(std::string stub, run_lld({"-shared", std::string("--soname=") + library.soname},
                                        {{{std::move(object)}, false}}));
    libraries.push_back(std::move(stub));
  }
  return libraries;
}

}  // namespace tw
