#include "packager/artifact.h"

#include <elf.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <cstring>

#include "packager/data_object.h"
#include "packager/elf_view.h"
#include "packager/llvm_object.h"
#include "support/file_pages.h"
#include "support/regular_file.h"

namespace tw {
namespace {

struct WeightsPlace {
  uint64_t offset = 0, address = 0, size = 0, alignment = 0;
};

// The weights follow the image in the file, from the next page on. The system can map a file's
// pages by huge pages only where the file offset and the address are equally far from a multiple of
// one, so large weights are placed like that. Weights of kAlignedWeights and more begin at such a
// multiple, so that none of them is on small pages; smaller ones leave no gap in the file.
WeightsPlace place_weights(const ElfSection& section, uint64_t image_bytes, uint64_t size) {
  WeightsPlace place;
  const uint64_t start = size >= kAlignedWeights ? kHugePage : kWeightsAlignment;
  place.offset = (image_bytes + start - 1) / start * start;
  place.address = section.address;
  place.size = size;
  place.alignment = size >= kLargeWeights ? kHugePage : kWeightsAlignment;
  place.address += place.offset % place.alignment;
  return place;
}

template <class Segment, class Section>
void write_place(std::string& bytes, const ElfSegment& segment, const ElfSection& section,
                 const WeightsPlace& place) {
  Segment s;
  std::memcpy(&s, bytes.data() + segment.header_offset, sizeof s);
  s.p_offset = static_cast<decltype(s.p_offset)>(place.offset);
  s.p_vaddr = s.p_paddr = static_cast<decltype(s.p_vaddr)>(place.address);
  s.p_filesz = s.p_memsz = static_cast<decltype(s.p_filesz)>(place.size);
  s.p_align = static_cast<decltype(s.p_align)>(place.alignment);
  std::memcpy(bytes.data() + segment.header_offset, &s, sizeof s);
  Section h;
  std::memcpy(&h, bytes.data() + section.header_offset, sizeof h);
  h.sh_addr = static_cast<decltype(h.sh_addr)>(place.address);
  std::memcpy(bytes.data() + section.header_offset, &h, sizeof h);
}

// Writes the place into the program header, into the section header, and into the distance that the
// runtime adds.
void point_at(std::string& bytes, const ElfView& view, const ElfSegment& segment,
              const ElfSection& section, const WeightsPlace& place) {
  if (view.is64()) write_place<Elf64_Phdr, Elf64_Shdr>(bytes, segment, section, place);
  else write_place<Elf32_Phdr, Elf32_Shdr>(bytes, segment, section, place);
  give_bytes(bytes, view.is64(), section, place.offset, place.size);
  const ElfSection* distance = view.section(kOffsetSection);
  TW_CHECK(distance && view.contents(*distance).size() == 8, "the linker dropped a section");
  const uint64_t value = place.address - distance->address;
  std::memcpy(bytes.data() + distance->offset, &value, sizeof value);
}

}  // namespace

Expected<ArtifactWriter> ArtifactWriter::create(const std::string& path, const LinkedImage& image,
                                                uint64_t weight_bytes) {
  std::string bytes = image.bytes;
  TW_ASSIGN(const ElfView view, ElfView::parse(image.bytes, path));
  const ElfSection* section = view.section(kWeightsSection);
  TW_CHECK(section, "the image has no {0} section", kWeightsSection);
  const auto segment = std::find_if(
      view.segments().begin(), view.segments().end(),
      [&](const ElfSegment& s) { return s.type == PT_LOAD && s.address == section->address; });
  TW_CHECK(segment != view.segments().end(), "the image has no segment for the weights");
  for (const ElfSegment& s : view.segments())
    TW_CHECK(s.type != PT_LOAD || s.address <= section->address,
             "the weights are not the last segment");
  // A model without weights keeps a segment that can be mapped.
  const uint64_t size = weight_bytes > 0 ? weight_bytes : 64;
  if (!view.is64() && size >= uint64_t{1} << 31)
    return make_error(DiagCode::limit, "'{0}': {1} bytes of weights do not fit a 32-bit machine",
                      path, weight_bytes);
  const WeightsPlace place = place_weights(*section, bytes.size(), size);
  const uint64_t start = place.offset;
  point_at(bytes, view, *segment, *section, place);
  if (weight_bytes > uint64_t{INT64_MAX} - start)
    return make_error(DiagCode::limit, "'{0}': too many bytes of weights", path);
  TW_ASSIGN(OutputFile file, OutputFile::create(path, start + size, true));
  TW_TRY(file.write(0, bytes));
  return ArtifactWriter(std::move(file), start, weight_bytes);
}

Error ArtifactWriter::write(uint64_t offset, std::string_view bytes) {
  TW_CHECK(offset <= bytes_ && bytes.size() <= bytes_ - offset,
           "a piece lies outside of the weights");
  return file_.write(start_ + offset, bytes);
}

Error ArtifactWriter::fill(uint64_t offset, uint64_t size,
                           llvm::function_ref<Error(std::span<std::byte>)> body) {
  TW_CHECK(offset <= bytes_ && size <= bytes_ - offset, "a piece lies outside of the weights");
  return file_.fill(start_ + offset, size, body);
}

Error ArtifactWriter::finish() {
  TW_ASSIGN(const std::unique_ptr<llvm::MemoryBuffer> written, file_.contents());
  const std::string_view bytes = written->getBuffer();
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, file_.path()));
  const PagesLeave leaving(std::as_bytes(std::span(bytes)));
  TW_ASSIGN(const ImageHashes hashes, image_hashes(view, bytes, file_.path()));
  TW_TRY(file_.write(hashes.offset, hashes.bytes));
  return file_.commit();
}

Expected<bool> is_artifact(const std::string& path) {
  TW_ASSIGN(const auto file, regular_file(path));
  return file->getBuffer().starts_with(
             "\x7f"
             "ELF") ||
         file->getBuffer().starts_with("!<ar");
}

Expected<std::string> read_manifest(const std::string& path, Integrity integrity) {
  // The file is mapped, so only the parts that are looked at are read.
  TW_ASSIGN(const auto buffer, regular_file(path));
  std::string_view bytes(buffer->getBufferStart(), buffer->getBufferSize());
  if (bytes.starts_with("!<arch>")) { TW_ASSIGN(bytes, archive_member(bytes, path)); }
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, path));
  const std::string_view note = view.note(kNoteOwner, kManifestNote);
  if (note.empty())
    return make_error(DiagCode::invalid_argument,
                      "'{0}' is not a Tilewright library: it has no manifest", path);
  // An object has no hash: its bytes become a part of a program.
  if (integrity == Integrity::check && !view.segments().empty())
    TW_TRY(check_integrity(view, bytes, path));
  return std::string(note.substr(0, note.find('\0')));
}

}  // namespace tw
