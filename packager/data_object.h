// Writes the packager's own relocatable object, by hand, for any ELF machine. It spares generated
// code all knowledge of where manifest and weights lie. It defines these hidden symbols:
//   tw_hashes          64 bytes in section .note.tilewright (owner "tilewright", type 2), zeros
//                      until packager/integrity.h fills them
//   tw_manifest        the manifest, NUL-terminated, in the same section (type 1)
//   tw_weights_offset  eight bytes in .tw_offset; once the weights have their place, ArtifactWriter
//                      writes address(.tw_weights) - address(.tw_offset) into them: no relocation,
//                      any distance
// It also has a 64 KiB-aligned section .tw_weights of one byte without contents. The grafted
// weights take its place.
//
// In an object for others to link, the eight bytes have a relocation. The weights lie in a section
// of .rodata, with the symbol tw_weights. The hashes stay zeros, because the file's bytes do not
// stay together in the program.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "support/diag.h"

namespace tw {

inline constexpr const char* kNoteSection = ".note.tilewright";
inline constexpr const char* kNoteOwner = "tilewright";
enum NoteType : uint32_t { kManifestNote = 1, kHashNote = 2 };
inline constexpr const char* kWeightsSection = ".tw_weights";
inline constexpr const char* kOffsetSection = ".tw_offset";
inline constexpr uint64_t kWeightsAlignment = 65536;  // the largest page of any supported machine
// The huge page of x86-64, AArch64 and RV64 with 4 KiB pages
inline constexpr uint64_t kHugePage = 2 << 20;
// From this size on the system may map weights by huge pages.
inline constexpr uint64_t kLargeWeights = 32 << 20;
// From this size on weights begin at a multiple of a huge page: the gap in front of them is less
// than a thirty-second of their size.
inline constexpr uint64_t kAlignedWeights = 64 << 20;

inline constexpr const char* kObjectOffsetSection = ".rodata.tw_offset";
inline constexpr const char* kObjectWeightsSection = ".rodata.tw_weights";
inline constexpr uint64_t kObjectWeightsAlignment = 64;

// `freestanding` is an object whose note takes no memory of the program.
enum class DataForm : uint8_t { library, object, freestanding };

// Class, machine and flags are those of `like`, an object of the same link.
Expected<std::string> make_data_object(std::string_view like, std::string_view manifest,
                                       DataForm form);

}  // namespace tw
