#include "packager/link.h"

#include <llvm/Support/FormatVariadic.h>

#include <algorithm>

#include "packager/android.h"
#include "packager/data_object.h"
#include "packager/elf_view.h"
#include "packager/lld.h"
#include "packager/memory_file.h"
#include "runtime/tilewright.h"

namespace tw {
namespace {

// Each segment starts in the file where the one before ends, yet on pages of its own in memory; a
// page has 64 KiB at most. {0}, {1} and {2} stand for an artifact's program headers, note and
// weights, and are empty otherwise.
const char* const kScript = R"(
PHDRS {{
  ro PT_LOAD FILEHDR PHDRS FLAGS(4); tx PT_LOAD FLAGS(5); rw PT_LOAD FLAGS(6); {0}
  dynamic PT_DYNAMIC FLAGS(6); relro PT_GNU_RELRO FLAGS(4); stack PT_GNU_STACK FLAGS(6);
}
SECTIONS {{
  . = SIZEOF_HEADERS;
  {1}
  .dynsym : {{ *(.dynsym) } :ro
  .gnu.hash : {{ *(.gnu.hash) }
  .hash : {{ *(.hash) }
  .dynstr : {{ *(.dynstr) }
  .gnu.version : {{ *(.gnu.version) }
  .rel.dyn : {{ *(.rel.dyn) }
  .rela.dyn : {{ *(.rela.dyn) }
  .rel.plt : {{ *(.rel.plt) }
  .rela.plt : {{ *(.rela.plt) }
  .rodata : {{ *(.rodata .rodata.*) } :ro
  . = ALIGN(65536) + (. & 65535);
  .text : {{ *(.text .text.*) } :tx
  .plt : {{ *(.plt) } :tx
  .iplt : {{ *(.iplt) } :tx
  . = ALIGN(65536) + (. & 65535);
  .data.rel.ro : {{ *(.data.rel.ro .data.rel.ro.*) } :rw :relro
  .dynamic : {{ *(.dynamic) } :rw :relro :dynamic
  .got : {{ *(.got) } :rw :relro
  .got.plt : {{ *(.got.plt) } :rw :relro
  . = ALIGN(65536) + (. & 65535);
  .data : {{ *(.data .data.* .sdata .sdata.*) } :rw
  .bss : {{ *(.bss .bss.* .sbss .sbss.* COMMON) } :rw
  {2}
  .symtab : {{ *(.symtab) }
  .strtab : {{ *(.strtab) }
  .shstrtab : {{ *(.shstrtab) }
  /DISCARD/ : {{ *(.eh_frame .eh_frame_hdr .comment .llvm_addrsig .note.GNU-stack .ARM.exidx* .ARM.attributes .riscv.attributes .relro_padding) }
}
)";

std::string linker_script(bool artifact) {
  if (!artifact) return llvm::formatv(kScript, "", "", "").str();
  const std::string note = llvm::formatv(
                               "{0} : {{ KEEP(*({0})) } :ro :note\n  {1} : {{ KEEP(*({1})) } :ro",
                               kNoteSection, kOffsetSection)
                               .str();
  const std::string weights = llvm::formatv(". = ALIGN({1});\n  {0} : {{ KEEP(*({0})) } :wt",
                                            kWeightsSection, kHugePage)
                                  .str();
  return llvm::formatv(kScript, "wt PT_LOAD FLAGS(4); note PT_NOTE FLAGS(4);", note, weights).str();
}

Error check_symbols(const std::string& bytes, const LinkRequest& request) {
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, request.soname));
  TW_ASSIGN(const std::vector<ElfSymbol> symbols, view.dynamic_symbols());
  std::vector<Diag> diags;
  const auto report = [&](const char* format, std::string_view name) {
    diags.push_back({DiagCode::unsupported, llvm::formatv(format, name).str(), {}, {}});
  };
  for (const ElfSymbol& s : symbols) {
    const bool wanted = std::find(request.exports.begin(), request.exports.end(), s.name) !=
                        request.exports.end();
    if (s.defined && !wanted)
      report("the library would export '{0}', which is not part of its interface", s.name);
    if (!s.defined && !undefined_symbol_allowed(s.name, s.weak))
      report(
          "the generated code needs '{0}', which a library may not take from the program that "
          "loads it",
          s.name);
  }
  for (const std::string& name : request.exports) {
    const auto is_it = [&](const ElfSymbol& s) { return s.defined && s.name == name; };
    if (std::none_of(symbols.begin(), symbols.end(), is_it))
      report("no object defines '{0}', which the library is to export", name);
  }
  return make_error(std::move(diags));
}

// Links once. The result needs `libraries`, which are shared libraries.
Expected<std::string> link_once(const LinkRequest& request,
                                const std::vector<std::string>& libraries) {
  TW_ASSIGN(MemoryFile script, MemoryFile::create(linker_script(request.manifest.has_value())));
  std::vector<std::string> arguments = {"-shared",
                                        "-z",
                                        "undefs",
                                        "-z",
                                        "now",
                                        "-z",
                                        "max-page-size=65536",
                                        "--build-id=none",
                                        "--gc-sections",
                                        "--hash-style=both",
                                        "--orphan-handling=error",
                                        "-T",
                                        script.path()};
  if (!request.soname.empty()) arguments.push_back("--soname=" + request.soname);
  std::vector<std::string> last;
  if (request.manifest) {
    TW_ASSIGN(std::string object,
              make_data_object(request.objects.front(), *request.manifest, DataForm::library));
    last.push_back(std::move(object));
  }
  return run_lld(
      std::move(arguments),
      {{request.objects, false}, {request.fallback, true}, {last, false}, {libraries, false}});
}

// Links again, with the libraries that define the undefined names of `bytes`, the first link's
// result.
Expected<std::string> link_for_android(const LinkRequest& request, const std::string& bytes) {
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, request.soname));
  TW_ASSIGN(const std::vector<ElfSymbol> symbols, view.dynamic_symbols());
  TW_ASSIGN(const std::vector<std::string> libraries, android_libraries(view, symbols));
  return link_once(request, libraries);
}

}  // namespace

std::vector<std::string> model_exports(const std::string& name) {
  return {"tw_" + name + "_query", TW_QUERY_SYMBOL};
}

bool undefined_symbol_allowed(std::string_view name, bool weak) {
  for (std::string_view allowed : {"mmap", "munmap", "syscall", "memset", "memcpy"})
    if (name == allowed) return true;
  for (std::string_view optional : {"pthread_create", "pthread_join", "dlopen", "dlsym", "getenv"})
    if (weak && name == optional) return true;
  return false;
}

Expected<LinkedImage> link_shared(const LinkRequest& request) {
  TW_CHECK(!request.objects.empty(), "nothing to link");
  TW_ASSIGN(std::string bytes, link_once(request, {}));
  if (is_android(request.triple)) { TW_ASSIGN(bytes, link_for_android(request, bytes)); }
  TW_TRY(check_symbols(bytes, request));
  return LinkedImage{std::move(bytes)};
}

}  // namespace tw
