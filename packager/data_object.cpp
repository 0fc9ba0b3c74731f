#include "packager/data_object.h"

#include <elf.h>

#include <cstring>
#include <utility>
#include <vector>

#include "packager/elf_view.h"
#include "runtime/model.h"

namespace tw {
namespace {

struct Format64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Symbol = Elf64_Sym;
  using Relocation = Elf64_Rela;
  static uint64_t info(uint64_t symbol, uint64_t type) { return ELF64_R_INFO(symbol, type); }
  static constexpr uint32_t kRelocationType = SHT_RELA;
  static constexpr unsigned char kClass = ELFCLASS64;
};
struct Format32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Symbol = Elf32_Sym;
  using Relocation = Elf32_Rel;
  static uint32_t info(uint32_t symbol, uint32_t type) { return ELF32_R_INFO(symbol, type); }
  static constexpr uint32_t kRelocationType = SHT_REL;
  static constexpr unsigned char kClass = ELFCLASS32;
};

enum SectionIndex : uint16_t {
  kNull,
  kNote,
  kOffset,
  kWeights,
  kSymbols,
  kSymbolNames,
  kSectionNames,
  kRelocations,  // the last one, in objects only: a library has no relocations
  kSectionCount
};
enum SymbolIndex : uint8_t { kHashes = 1, kManifest, kWeightsOffset, kWeightsStart };

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void align(std::string& out, size_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
}
uint32_t add_name(std::string& table, const char* name) {  // offset of the name in the string table
  const auto at = static_cast<uint32_t>(table.size());
  table.append(name, std::strlen(name) + 1);
  return at;
}

// Adds a note. The result is the offset of its contents.
size_t add_note(std::string& notes, NoteType type, std::string_view contents) {
  const std::string owner(kNoteOwner);
  append(notes, Elf64_Nhdr{static_cast<uint32_t>(owner.size() + 1),
                           static_cast<uint32_t>(contents.size()), type});
  notes += owner + '\0';
  align(notes, 4);
  const size_t start = notes.size();
  notes += contents;
  align(notes, 4);
  return start;
}

// The one or two relocations that make eight bytes the distance from themselves to the weights.
// 32-bit machines have a relocation for the low word only, and read no more than that.
std::vector<std::pair<SymbolIndex, uint32_t>> distance_relocations(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return {{kWeightsStart, R_X86_64_PC64}};
    case EM_AARCH64: return {{kWeightsStart, R_AARCH64_PREL64}};
    case EM_ARM: return {{kWeightsStart, R_ARM_REL32}};
    case EM_RISCV: return {{kWeightsStart, R_RISCV_ADD64}, {kWeightsOffset, R_RISCV_SUB64}};
    default: TW_UNREACHABLE("no relocations for the ELF machine {0}", machine);
  }
}

template <class Format>
std::string write_relocations(uint16_t machine) {
  std::string out;
  for (const auto& [symbol, type] : distance_relocations(machine)) {
    typename Format::Relocation r = {};
    r.r_info = Format::info(symbol, type);
    append(out, r);
  }
  return out;
}

template <class Format>
typename Format::Header header_of(const ElfView& like, DataForm form) {
  typename Format::Header header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = Format::kClass;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = like.machine();
  header.e_version = EV_CURRENT;
  header.e_flags = like.flags();
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(typename Format::Section);
  header.e_shnum = form == DataForm::library ? kRelocations : kSectionCount;
  header.e_shstrndx = kSectionNames;
  return header;
}

template <class Format>
typename Format::Symbol global(std::string& names, const char* name, SectionIndex section,
                               uint64_t value, uint64_t size) {
  typename Format::Symbol s = {};
  s.st_name = add_name(names, name);
  s.st_info = ELF32_ST_INFO(STB_GLOBAL, STT_OBJECT);
  s.st_other = STV_HIDDEN;
  s.st_shndx = section;
  s.st_value = static_cast<decltype(s.st_value)>(value);
  s.st_size = static_cast<decltype(s.st_size)>(size);
  return s;
}

template <class Format>
std::string write_object(const ElfView& like, std::string_view manifest, DataForm form) {
  using Symbol = typename Format::Symbol;
  using Section = typename Format::Section;
  typename Format::Header header = header_of<Format>(like, form);
  std::string notes;
  const size_t hashes_offset = add_note(notes, kHashNote, std::string(TW_HASHES_BYTES, '\0'));
  const size_t text_offset = add_note(notes, kManifestNote, std::string(manifest) + '\0');
  std::string symbol_names(1, '\0'), section_names(1, '\0'), out(sizeof header, '\0');
  std::vector<Section> sections(header.e_shnum);
  const bool library = form == DataForm::library;
  const auto place = [&](SectionIndex index, const char* name, uint32_t type, uint64_t flags,
                         uint64_t alignment, std::string_view bytes) {
    align(out, 8);
    Section& s = sections[index];
    s.sh_name = add_name(section_names, name);
    s.sh_type = type;
    s.sh_flags = static_cast<decltype(s.sh_flags)>(flags);
    s.sh_addralign = static_cast<decltype(s.sh_addralign)>(alignment);
    s.sh_offset = static_cast<decltype(s.sh_offset)>(out.size());
    s.sh_size = static_cast<decltype(s.sh_size)>(bytes.size());
    out.append(bytes);
  };
  std::string symbols(sizeof(Symbol), '\0');
  append(symbols, global<Format>(symbol_names, "tw_hashes", kNote, hashes_offset, TW_HASHES_BYTES));
  append(symbols,
         global<Format>(symbol_names, "tw_manifest", kNote, text_offset, manifest.size() + 1));
  append(symbols, global<Format>(symbol_names, "tw_weights_offset", kOffset, 0, 8));
  if (!library) append(symbols, global<Format>(symbol_names, "tw_weights", kWeights, 0, 0));

  place(kNote, kNoteSection, SHT_NOTE, form == DataForm::freestanding ? 0 : SHF_ALLOC, 4, notes);
  place(kOffset, library ? kOffsetSection : kObjectOffsetSection, SHT_PROGBITS, SHF_ALLOC, 8,
        std::string(8, '\0'));
  place(kWeights, library ? kWeightsSection : kObjectWeightsSection, SHT_NOBITS, SHF_ALLOC,
        library ? kWeightsAlignment : kObjectWeightsAlignment, {});
  sections[kWeights].sh_size = 1;
  place(kSymbols, ".symtab", SHT_SYMTAB, 0, 8, symbols);
  sections[kSymbols].sh_link = kSymbolNames;
  sections[kSymbols].sh_info = 1;  // index of the first global symbol
  sections[kSymbols].sh_entsize = sizeof(Symbol);
  place(kSymbolNames, ".strtab", SHT_STRTAB, 0, 1, symbol_names);
  if (!library) {
    place(kRelocations, "relocations", Format::kRelocationType, SHF_INFO_LINK, 8,
          write_relocations<Format>(like.machine()));
    sections[kRelocations].sh_link = kSymbols;
    sections[kRelocations].sh_info = kOffset;
    sections[kRelocations].sh_entsize = sizeof(typename Format::Relocation);
  }
  const uint32_t own_name = add_name(section_names, ".shstrtab");
  place(kSectionNames, "", SHT_STRTAB, 0, 1, {});
  sections[kSectionNames].sh_name = own_name;
  sections[kSectionNames].sh_size = static_cast<decltype(Section::sh_size)>(section_names.size());
  out += section_names;
  align(out, 8);
  header.e_shoff = static_cast<decltype(header.e_shoff)>(out.size());
  for (const Section& s : sections) append(out, s);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

}  // namespace

Expected<std::string> make_data_object(std::string_view like, std::string_view manifest,
                                       DataForm form) {
  TW_ASSIGN(const ElfView view, ElfView::parse(like, "object"));
  return view.is64() ? write_object<Format64>(view, manifest, form)
                     : write_object<Format32>(view, manifest, form);
}

}  // namespace tw
