#include "packager/integrity.h"

#include <elf.h>
#include <llvm/Support/BLAKE3.h>

#include <algorithm>
#include <vector>

#include "packager/data_object.h"
#include "runtime/model.h"

namespace tw {
namespace {

using Hash = llvm::BLAKE3Result<>;
struct ByteRange {
  uint64_t begin, end;
};

std::string_view text(const Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

// Adds the range to the hash, with zeros in place of the hashes.
void add_bytes(llvm::BLAKE3& hasher, std::string_view bytes, ByteRange range, ByteRange hashes) {
  const auto plain = [&](uint64_t begin, uint64_t end) {
    if (begin < end) hasher.update(llvm::StringRef(bytes.data() + begin, end - begin));
  };
  const uint64_t begin = std::clamp(hashes.begin, range.begin, range.end),
                 end = std::clamp(hashes.end, range.begin, range.end);
  plain(range.begin, begin);
  hasher.update(std::string(end - begin, '\0'));
  plain(end, range.end);
}

Error damaged(const std::string& name, const std::string& why) {
  return make_error({DiagCode::damaged,
                     "'" + name + "' is damaged: " + why,
                     {},
                     {"compile it again or copy it anew; --no-check takes it as it is"}});
}

}  // namespace

Expected<ImageHashes> image_hashes(const ElfView& view, std::string_view bytes,
                                   const std::string& name) {
  const std::string_view note = view.note(kNoteOwner, kHashNote);
  if (note.size() != TW_HASHES_BYTES)
    return damaged(name, "it has no note with hashes of its bytes");
  const auto offset = static_cast<uint64_t>(note.data() - bytes.data());
  const ByteRange hashes{offset, offset + note.size()};
  std::vector<ByteRange> image;
  llvm::BLAKE3 of_image, of_file;
  for (const ElfSegment& s : view.segments()) {
    if (s.type != PT_LOAD) continue;
    if (s.offset > bytes.size() || s.file_size > bytes.size() - s.offset)
      return damaged(name,
                     llvm::formatv("it has {0} bytes, and a segment of {1} bytes begins at {2}",
                                   bytes.size(), s.file_size, s.offset)
                         .str());
    if (!(s.flags & PF_W)) image.push_back({s.offset, s.offset + s.file_size});
  }
  std::vector<ByteRange> order = image;
  std::ranges::sort(order, {}, &ByteRange::begin);
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1].end > order[i].begin) return damaged(name, "its segments share bytes");
  for (const ByteRange& range : image) add_bytes(of_image, bytes, range, hashes);
  Hash image_hash, file_hash;
  of_image.final(image_hash);
  of_file.update(llvm::StringRef(text(image_hash)));
  uint64_t at = 0;
  for (const ByteRange& range : order) {
    if (range.begin > at) add_bytes(of_file, bytes, {at, range.begin}, hashes);
    at = std::max(at, range.end);
  }
  add_bytes(of_file, bytes, {at, bytes.size()}, hashes);
  of_file.final(file_hash);
  return ImageHashes{offset, std::string(text(image_hash)) + std::string(text(file_hash))};
}

Error check_integrity(const ElfView& view, std::string_view bytes, const std::string& name) {
  TW_ASSIGN(const ImageHashes hashes, image_hashes(view, bytes, name));
  if (bytes.substr(hashes.offset, hashes.bytes.size()) == hashes.bytes) return Error::success();
  return damaged(name, "its bytes are not those that were written, by the hashes in its note");
}

}  // namespace tw
