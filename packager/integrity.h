// Whether an artifact's bytes are those that were written. The note holds two BLAKE3 hashes:
//   of the image  what is mapped and never written (code, constants, notes, weights), which a
//                 program can check by itself (tw_api.check_integrity)
//   of the file   the image's hash and all other bytes, so that both together cover every byte but
//                 their own, which count as zeros
#pragma once
#include <string>
#include <string_view>

#include "packager/elf_view.h"
#include "support/diag.h"

namespace tw {

enum class Integrity : uint8_t { check, trust };  // of a file that is about to be used

struct ImageHashes {
  uint64_t offset = 0;  // of the note's contents in the file
  std::string bytes;    // what belongs there
};
// `view` is of `bytes`. Errors name the file: its segments lie beyond its end, it has no note for
// hashes.
Expected<ImageHashes> image_hashes(const ElfView& view, std::string_view bytes,
                                   const std::string& name);
Error check_integrity(const ElfView& view, std::string_view bytes, const std::string& name);

}  // namespace tw
