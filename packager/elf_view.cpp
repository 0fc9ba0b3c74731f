#include "packager/elf_view.h"

#include <elf.h>

#include <cstring>

namespace tw {
namespace {

struct Elf64Format {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  using Section = Elf64_Shdr;
};
struct Elf32Format {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  using Section = Elf32_Shdr;
};

// Reads a T; the caller has checked the range.
template <class T>
T read_at(std::string_view bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

constexpr size_t kMostText = 1 << 14;  // most bytes of a name: many names may lie in one long text

// The NUL-terminated text at `offset` of a string table; empty when it is not there.
std::string_view text_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return {};
  std::string_view rest = table.substr(offset, kMostText);
  size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

}  // namespace

Expected<ElfView> ElfView::parse(std::string_view bytes, const std::string& name) {
  ElfView view;
  view.bytes_ = bytes;
  view.name_ = name;
  if (bytes.size() < EI_NIDENT || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    return make_error(DiagCode::invalid_argument, "'{0}' is not an ELF file", name);
  if (bytes[EI_DATA] != ELFDATA2LSB)
    return make_error(DiagCode::unsupported, "'{0}' is a big-endian ELF file", name);
  view.is64_ = bytes[EI_CLASS] == ELFCLASS64;
  TW_TRY(view.is64_ ? view.read_tables<Elf64Format>() : view.read_tables<Elf32Format>());
  return view;
}

template <class Format>
Error ElfView::read_tables() {
  using Header = typename Format::Header;
  using Segment = typename Format::Segment;
  using Section = typename Format::Section;
  if (!holds(0, sizeof(Header)))
    return make_error(DiagCode::invalid_argument, "'{0}' is a truncated ELF file", name_);
  const Header header = read_at<Header>(bytes_, 0);
  machine_ = header.e_machine;
  flags_ = header.e_flags;
  bool whole = (header.e_phnum == 0 || header.e_phentsize == sizeof(Segment)) &&
               (header.e_shnum == 0 || header.e_shentsize == sizeof(Section)) &&
               holds(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Segment)) &&
               holds(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Section));
  if (!whole) return make_error(DiagCode::invalid_argument, "'{0}' is a truncated ELF file", name_);
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t at = header.e_phoff + i * sizeof(Segment);
    const Segment s = read_at<Segment>(bytes_, at);
    segments_.push_back({s.p_type, s.p_flags, at, s.p_offset, s.p_vaddr, s.p_filesz, s.p_memsz});
  }
  std::vector<uint32_t> names;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const uint64_t at = header.e_shoff + i * sizeof(Section);
    const Section s = read_at<Section>(bytes_, at);
    sections_.push_back({{}, s.sh_type, s.sh_link, at, s.sh_offset, s.sh_addr, s.sh_size});
    names.push_back(s.sh_name);
  }
  if (header.e_shstrndx < sections_.size()) {
    const std::string_view table = contents(sections_[header.e_shstrndx]);
    for (size_t i = 0; i < sections_.size(); ++i) sections_[i].name = text_at(table, names[i]);
  }
  return Error::success();
}

const ElfSection* ElfView::section(std::string_view name) const {
  for (const ElfSection& s : sections_)
    if (s.name == name) return &s;
  return nullptr;
}

std::string_view ElfView::contents(const ElfSection& section) const {
  if (section.type == SHT_NOBITS || !holds(section.offset, section.size)) return {};
  return bytes_.substr(section.offset, section.size);
}

template <class Symbol>
Expected<std::vector<ElfSymbol>> ElfView::read_symbols(const ElfSection& table) const {
  const std::string_view data = contents(table);
  if (table.link >= sections_.size() || data.size() != table.size)
    return make_error(DiagCode::invalid_argument, "'{0}' has a damaged symbol table", name_);
  const std::string_view names = contents(sections_[table.link]);
  std::vector<ElfSymbol> out;
  for (uint64_t at = sizeof(Symbol); at + sizeof(Symbol) <= data.size(); at += sizeof(Symbol)) {
    const Symbol s = read_at<Symbol>(data, at);
    const unsigned binding = ELF32_ST_BIND(s.st_info);
    out.push_back({text_at(names, s.st_name), s.st_shndx != SHN_UNDEF, binding == STB_WEAK,
                   binding == STB_LOCAL});
  }
  return out;
}

Expected<std::vector<ElfSymbol>> ElfView::symbols_of(uint32_t section_type) const {
  for (const ElfSection& s : sections_)
    if (s.type == section_type)
      return is64_ ? read_symbols<Elf64_Sym>(s) : read_symbols<Elf32_Sym>(s);
  return std::vector<ElfSymbol>();
}

Expected<std::vector<ElfSymbol>> ElfView::dynamic_symbols() const { return symbols_of(SHT_DYNSYM); }

Expected<std::vector<ElfSymbol>> ElfView::global_symbols() const {
  TW_ASSIGN(std::vector<ElfSymbol> symbols, symbols_of(SHT_SYMTAB));
  std::erase_if(symbols, [](const ElfSymbol& s) { return s.local; });
  return symbols;
}

std::string_view ElfView::note_in(std::string_view rest, std::string_view owner, uint32_t type) {
  const auto padded = [](uint64_t n) { return (n + 3) & ~uint64_t{3}; };
  while (rest.size() >= sizeof(Elf64_Nhdr)) {  // the head of a note is alike in 32 and 64 bits
    const auto head = read_at<Elf64_Nhdr>(rest, 0);
    const uint64_t text = sizeof head + padded(head.n_namesz), end = text + padded(head.n_descsz);
    if (end > rest.size()) break;
    if (head.n_type == type && head.n_namesz == owner.size() + 1 &&
        rest.substr(sizeof head, owner.size()) == owner)
      return rest.substr(text, head.n_descsz);
    rest.remove_prefix(end);
  }
  return {};
}

std::string_view ElfView::note(std::string_view owner, uint32_t type) const {
  // The bytes to look through have a limit: notes that share bytes could take hours.
  uint64_t rest = bytes_.size();
  const auto find = [&](std::string_view notes) {
    if (notes.size() > rest) return std::string_view();
    rest -= notes.size();
    return note_in(notes, owner, type);
  };
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_NOTE || !holds(segment.offset, segment.file_size)) continue;
    const std::string_view found = find(bytes_.substr(segment.offset, segment.file_size));
    if (!found.empty()) return found;
  }
  if (!segments_.empty()) return {};
  for (const ElfSection& section : sections_) {
    if (section.type != SHT_NOTE) continue;
    if (const std::string_view found = find(contents(section)); !found.empty()) return found;
  }
  return {};
}

template <class Section>
static void give_bytes_to(std::string& file, const ElfSection& section, uint64_t offset,
                          uint64_t size) {
  Section h;
  std::memcpy(&h, file.data() + section.header_offset, sizeof h);
  h.sh_type = SHT_PROGBITS;
  h.sh_offset = static_cast<decltype(h.sh_offset)>(offset);
  h.sh_size = static_cast<decltype(h.sh_size)>(size);
  std::memcpy(file.data() + section.header_offset, &h, sizeof h);
}

void give_bytes(std::string& file, bool is64, const ElfSection& section, uint64_t offset,
                uint64_t size) {
  if (is64) give_bytes_to<Elf64_Shdr>(file, section, offset, size);
  else give_bytes_to<Elf32_Shdr>(file, section, offset, size);
}

}  // namespace tw
