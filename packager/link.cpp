#include "packager/link.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "packager/data_object.h"
#include "packager/elf_view.h"
#include "packager/memory_file.h"
#include "runtime/tilewright.h"

LLD_HAS_DRIVER(elf)

namespace tw {
namespace {

// Segments start in the file where the one before ends, yet on pages of their own in memory; pages
// are of 64 KiB at most. {0}, {1}, {2}: an artifact's program headers, note and weights, or
// nothing.
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

// What lld writes. Where the name of its output is not a regular file's, it makes the library in
// memory and writes it there at once: here into a pipe, so that no file is ever there.
class PipedOutput {
 public:
  static Expected<std::unique_ptr<PipedOutput>> create() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return make_error(DiagCode::io, "cannot create a pipe: {0}", std::strerror(errno));
    return std::unique_ptr<PipedOutput>(new PipedOutput(ends[0], ends[1]));
  }
  ~PipedOutput() {
    finish();
    ::close(from_);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(to_); }
  std::string finish() {  // once nobody writes any more
    if (to_ >= 0) {
      ::close(std::exchange(to_, -1));
      reader_.join();
    }
    return std::move(bytes_);
  }

 private:
  PipedOutput(int from, int to) : from_(from), to_(to), reader_([this] { read(); }) {}
  void read() {
    std::vector<char> piece(1 << 16);
    while (true) {
      const ssize_t done = ::read(from_, piece.data(), piece.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return;
      bytes_.append(piece.data(), static_cast<size_t>(done));
    }
  }

  int from_, to_;
  std::string bytes_;
  std::thread reader_;
};

Error run_lld(const std::vector<std::string>& arguments) {
  static std::mutex lld_mutex;  // lld keeps its state in globals
  std::vector<const char*> argv;
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  std::string text;
  llvm::raw_string_ostream errors(text);
  int status = 0;
  {
    const std::lock_guard<std::mutex> lock(lld_mutex);
    status = lld::lldMain(argv, llvm::nulls(), errors, {{lld::Gnu, &lld::elf::link}}).retCode;
  }
  if (status == 0) return Error::success();
  Diag diag{DiagCode::io, "linking failed", {}, {}};
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines) diag.notes.push_back(line.str());
  return make_error(std::move(diag));
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

// Writes the distance to the weights, now that all has its place.
Error finish_weights_offset(std::string& bytes) {
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, "image"));
  const ElfSection* offset = view.section(kOffsetSection);
  const ElfSection* weights = view.section(kWeightsSection);
  TW_CHECK(offset && weights && view.contents(*offset).size() == 8, "the linker dropped a section");
  const uint64_t distance = weights->address - offset->address;
  std::memcpy(bytes.data() + offset->offset, &distance, sizeof distance);
  return Error::success();
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
  std::vector<MemoryFile> files;
  TW_ASSIGN(MemoryFile script, MemoryFile::create(linker_script(request.manifest.has_value())));
  TW_ASSIGN(const std::unique_ptr<PipedOutput> output, PipedOutput::create());
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-z",
                                        "undefs",
                                        "-z",
                                        "now",
                                        "-z",
                                        "max-page-size=65536",
                                        "--threads=1",
                                        "--build-id=none",
                                        "--gc-sections",
                                        "--hash-style=both",
                                        "--orphan-handling=error",
                                        "--color-diagnostics=never",
                                        "-T",
                                        script.path(),
                                        "-o",
                                        output->path()};
  if (!request.soname.empty()) arguments.push_back("--soname=" + request.soname);
  for (const std::string& object : request.objects) {
    TW_ASSIGN(MemoryFile file, MemoryFile::create(object));
    arguments.push_back(file.path());
    files.push_back(std::move(file));
  }
  if (!request.fallback.empty()) arguments.push_back("--start-lib");
  for (const std::string& object : request.fallback) {
    TW_ASSIGN(MemoryFile file, MemoryFile::create(object));
    arguments.push_back(file.path());
    files.push_back(std::move(file));
  }
  if (!request.fallback.empty()) arguments.push_back("--end-lib");
  if (request.manifest) {
    TW_ASSIGN(const std::string object,
              make_data_object(request.objects.front(), *request.manifest));
    TW_ASSIGN(MemoryFile file, MemoryFile::create(object));
    arguments.push_back(file.path());
    files.push_back(std::move(file));
  }
  TW_TRY(run_lld(arguments));
  std::string bytes = output->finish();
  TW_TRY(check_symbols(bytes, request));
  if (request.manifest) TW_TRY(finish_weights_offset(bytes));
  return LinkedImage{std::move(bytes)};
}

}  // namespace tw
