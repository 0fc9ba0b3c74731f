// Detects damage: says whether an artifact's bytes are the bytes that were written. The note holds
// two BLAKE3 hashes:
//   of the image  the parts that are mapped and never written (code, constants, notes, weights);
//                 a program can check this one by itself (tw_api.check_integrity)
//   of the file   the image's hash and all other bytes
// Together they cover every byte but their own, which count as zeros.
#pragma once
#include <string>
#include <string_view>

#include "packager/elf_view.h"
#include "support/diag.h"

namespace tw {

enum class Integrity : uint8_t { check, trust };

struct ImageHashes {
  uint64_t offset = 0;  // offset of the note's contents in the file
  std::string bytes;    // the hashes that belong there
};
// The hashes of `bytes`, of which `view` is a view. Errors name the file: its segments lie beyond
// its end or share bytes, or it has no note for hashes.
Expected<ImageHashes> image_hashes(const ElfView& view, std::string_view bytes,
                                   const std::string& name);
Error check_integrity(const ElfView& view, std::string_view bytes, const std::string& name);

}  // namespace tw
