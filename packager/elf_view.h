// A bounds-checked reader of little-endian ELF files, 32 and 64 bit in one form. Input may be
// hostile: every range that the file states is checked before it is used.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace tw {

struct ElfSegment {
  uint32_t type = 0, flags = 0;
  uint64_t header_offset = 0;  // offset of the program header in the file
  uint64_t offset = 0, address = 0, file_size = 0, memory_size = 0;
};

struct ElfSection {
  std::string_view name;
  uint32_t type = 0, link = 0;
  uint64_t header_offset = 0;  // offset of the section header in the file
  uint64_t offset = 0, address = 0, size = 0;
};

struct ElfSymbol {
  std::string_view name;
  bool defined = false, weak = false, local = false;
};

// Gives a section of a file in the making `size` bytes, at `offset` of the file.
void give_bytes(std::string& file, bool is64, const ElfSection& section, uint64_t offset,
                uint64_t size);

class ElfView {
 public:
  // Keeps a reference to `bytes`. Errors name the file as `name`.
  static Expected<ElfView> parse(std::string_view bytes, const std::string& name);

  bool is64() const { return is64_; }
  uint16_t machine() const { return machine_; }
  uint32_t flags() const { return flags_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  const ElfSection* section(std::string_view name) const;  // the first with that name, or null

  // The section's bytes; empty when it has none in the file or they lie outside of it.
  std::string_view contents(const ElfSection& section) const;
  // The dynamic symbols, without the null symbol
  Expected<std::vector<ElfSymbol>> dynamic_symbols() const;
  // The symbols of an object that other objects see
  Expected<std::vector<ElfSymbol>> global_symbols() const;
  // The contents of the first note with this owner and type; empty when there is none. A library's
  // notes are in PT_NOTE segments, an object's in SHT_NOTE sections.
  std::string_view note(std::string_view owner, uint32_t type) const;

 private:
  template <class Format>
  Error read_tables();
  template <class Symbol>
  Expected<std::vector<ElfSymbol>> read_symbols(const ElfSection& table) const;
  Expected<std::vector<ElfSymbol>> symbols_of(uint32_t section_type) const;
  static std::string_view note_in(std::string_view notes, std::string_view owner, uint32_t type);
  bool holds(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

  std::string_view bytes_;
  std::string name_;
  bool is64_ = false;
  uint16_t machine_ = 0;
  uint32_t flags_ = 0;
  std::vector<ElfSegment> segments_;
  std::vector<ElfSection> sections_;
};

}  // namespace tw
