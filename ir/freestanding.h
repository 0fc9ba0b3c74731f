// Machines without an operating system. The third word of their triple is "none".
#pragma once
#include <string>
#include <string_view>

#include "ir/target.h"
#include "support/diag.h"

namespace tw {

// Freestanding code has no system calls, no threads, and only its caller's memory. It needs at most
// memcpy, memmove and memset, and the program's author links it.
inline bool is_freestanding(std::string_view triple) {
  return triple.find("-none-") != std::string_view::npos;
}

// A microcontroller is freestanding and runs Thumb code. It reads constants from flash, in place.
inline bool is_microcontroller(std::string_view triple) {
  return is_freestanding(triple) && triple.starts_with("thumb");
}

// The architecture's triple without an operating system, such as "x86_64-none-elf". A freestanding
// triple stays as it is.
inline std::string freestanding_triple(const std::string& triple) {
  if (is_freestanding(triple)) return triple;
  const std::optional<Arch> arch = arch_from_triple(triple);
  TW_CHECK(arch, "no code generator for the triple '{0}'", triple);
  return *arch == Arch::arm ? "armv7-none-eabihf" : std::string(arch_name(*arch)) + "-none-elf";
}

}  // namespace tw
