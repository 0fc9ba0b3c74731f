// Machines without an operating system: the third word of their triple is "none".
#pragma once
#include <string>
#include <string_view>

#include "ir/target.h"
#include "support/diag.h"

namespace tw {

// No system calls, no threads, no memory but the caller's: code for such a triple needs memcpy,
// memmove and memset at most, and is linked by the program's maker.
inline bool is_freestanding(std::string_view triple) {
  return triple.find("-none-") != std::string_view::npos;
}

// A microcontroller: freestanding, and its code is Thumb. It reads constants from flash, at their
// addresses.
inline bool is_microcontroller(std::string_view triple) {
  return is_freestanding(triple) && triple.starts_with("thumb");
}

// The architecture's triple without an operating system, as "x86_64-none-elf"; of a freestanding
// triple that one.
inline std::string freestanding_triple(const std::string& triple) {
  if (is_freestanding(triple)) return triple;
  const std::optional<Arch> arch = arch_from_triple(triple);
  TW_CHECK(arch, "no code generator for the triple '{0}'", triple);
  return *arch == Arch::arm ? "armv7-none-eabihf" : std::string(arch_name(*arch)) + "-none-elf";
}

}  // namespace tw
